"""Sums and AdamW of update.c are torch's, step by step, for tensors of any size and with steps of their own."""

import math

import pytest
import torch

from regard.native.library import library
from regard.native.update import Learner, Learners, gather

pytestmark = pytest.mark.skipif(library is None, reason="needs the compiled part of regard, and so a C compiler")

BETAS, EPSILON = (0.9, 0.98), 1e-9


def noise(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def learner(p, decay, like=torch.zeros_like):
    return Learner(p.detach(), like(p), like(p), torch.zeros(()), decay)


def test_several_steps_of_unequal_tensors_are_those_of_torch():
    sizes, decays = [(3, 5), (1,), (17,), (64, 33)], [0.1, 0.0, 0.0, 0.2]
    ours = [noise(size, i).requires_grad_() for i, size in enumerate(sizes)]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    groups = [{"params": [p], "weight_decay": decay} for p, decay in zip(theirs, decays, strict=True)]
    reference = torch.optim.AdamW(groups, lr=0.0, betas=BETAS, eps=EPSILON)
    state = {}
    for step, rate in enumerate((0.1, 0.03, 0.2)):
        learners, gradients = [], []
        for place, (p, q, decay) in enumerate(zip(ours, theirs, decays, strict=True)):
            if step == 1 and place == 2:  # one has no gradient in this step, and counts one step less from then on
                p.grad = q.grad = None
                continue
            q.grad = noise(p.shape, 10 * step + place)
            p.grad = q.grad / 0.25
            mean, square, steps = state.setdefault(place, (torch.zeros_like(q), torch.zeros_like(q), torch.zeros(())))
            learners.append(Learner(p.detach(), mean, square, steps, decay))
            gradients.append(p.grad)
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
        assert Learners(learners).take(gradients, 0.25, rate, BETAS, EPSILON)
        torch.testing.assert_close(ours, theirs)
    assert [float(steps) for _, _, steps in state.values()] == [3, 3, 2, 3]


@pytest.mark.parametrize("odd", ["double", "gaps"])
def test_what_c_does_not_know_is_left_as_it_was(odd):
    p = noise((4, 6), 1)
    p = (p.double() if odd == "double" else p[:, ::2]).requires_grad_()
    p.grad = torch.ones_like(p)
    one, before = learner(p, 0.5), p.detach().clone()
    assert not Learners([one]).take([p.grad], 1.0, 0.1, BETAS, EPSILON)
    assert torch.equal(p, before)
    assert float(one.steps) == 0


def test_no_tensors_take_a_step_too():
    assert Learners([]).take([], 1.0, 0.1, BETAS, EPSILON)
    assert gather([], []) == 0.0


def test_a_gradient_with_gaps_is_not_stepped_along():
    p = noise((4, 6), 1)
    one, before = learner(p, 0.5), p.clone()
    assert not Learners([one]).take([torch.ones(6, 4).mT], 1.0, 0.1, BETAS, EPSILON)
    assert torch.equal(p, before)


def test_gradients_of_unequal_tensors_are_added_and_their_squares_summed():
    sizes = [(3, 5), (1,), (5000,), (0, 2)]
    first, second = ([noise(size, 10 * seed + place) for place, size in enumerate(sizes)] for seed in (1, 2))
    second[1] = None
    expected = [x if y is None else x + y for x, y in zip(first, second, strict=True)]
    squares = gather(first, second)
    assert all(torch.equal(x, y) for x, y in zip(first, expected, strict=True))
    assert squares == pytest.approx(float(sum(x.double().square().sum() for x in expected)))


def test_what_is_not_finite_shows_in_the_sum():
    for bad in (torch.inf, torch.nan):
        assert not math.isfinite(gather([torch.tensor([1.0, bad])], [None]))


@pytest.mark.parametrize("odd", [torch.ones(2).double(), torch.ones(2, 4)[:, ::2]])
def test_sums_that_c_does_not_know_are_left_to_torch(odd):
    assert gather([odd], [odd]) is None
    assert gather([torch.ones(2)], [odd]) is None
