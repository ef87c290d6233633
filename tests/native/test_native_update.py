"""AdamW of update.c is torch's, step by step, for tensors of any size and with steps of their own."""

import pytest
import torch

from regard.native.library import library
from regard.native.update import Learner, adamw

pytestmark = pytest.mark.skipif(library is None, reason="needs the compiled part of regard, and so a C compiler")

BETAS, EPSILON = (0.9, 0.98), 1e-9


def noise(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def learner(p, decay, like=torch.zeros_like):
    return Learner(p.detach(), like(p), like(p), p.grad, torch.zeros(()), decay)


def test_several_steps_of_unequal_tensors_are_those_of_torch():
    sizes, decays = [(3, 5), (1,), (17,), (64, 33)], [0.1, 0.0, 0.0, 0.2]
    ours = [noise(size, i).requires_grad_() for i, size in enumerate(sizes)]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    groups = [{"params": [p], "weight_decay": decay} for p, decay in zip(theirs, decays, strict=True)]
    reference = torch.optim.AdamW(groups, lr=0.0, betas=BETAS, eps=EPSILON)
    state = {}
    for step, rate in enumerate((0.1, 0.03, 0.2)):
        learners = []
        for place, (p, q, decay) in enumerate(zip(ours, theirs, decays, strict=True)):
            if step == 1 and place == 2:  # one has no gradient in this step, and counts one step less from then on
                p.grad = q.grad = None
                continue
            q.grad = noise(p.shape, 10 * step + place)
            p.grad = q.grad / 0.25
            mean, square, steps = state.setdefault(place, (torch.zeros_like(q), torch.zeros_like(q), torch.zeros(())))
            learners.append(Learner(p.detach(), mean, square, p.grad, steps, decay))
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
        assert adamw(learners, 0.25, rate, BETAS, EPSILON)
        torch.testing.assert_close(ours, theirs)
    assert [float(steps) for _, _, steps in state.values()] == [3, 3, 2, 3]


@pytest.mark.parametrize("odd", ["double", "gaps"])
def test_what_c_does_not_know_is_left_as_it_was(odd):
    p = noise((4, 6), 1)
    p = (p.double() if odd == "double" else p[:, ::2]).requires_grad_()
    p.grad = torch.ones_like(p)
    one, before = learner(p, 0.5), p.detach().clone()
    assert not adamw([one], 1.0, 0.1, BETAS, EPSILON)
    assert torch.equal(p, before)
    assert float(one.steps) == 0


def test_no_tensors_take_a_step_too():
    assert adamw([], 1.0, 0.1, BETAS, EPSILON)
