from pathlib import Path

import pytest
import torch
from torch import nn
from toy_task import Toy, toy_model

from regard.errors import ModelFormatError
from regard.training.optimiser import build_optimiser, moments, restore_moments, settle_gradients
from regard.training.options import TrainingOptions

HERE = Path("optimiser.safetensors")


def gradients(model):
    task = Toy()
    torch.manual_seed(1)
    loss = task.loss(model, task.collate(task.largest(), 0))
    loss.total.backward()
    return loss


@pytest.mark.parametrize("clip", [0.01, 100.0])
def test_division_and_clipping_agree_with_torch(clip):
    ours, theirs = toy_model(), toy_model()
    loss, mean = gradients(ours), gradients(theirs)
    for p in theirs.parameters():
        p.grad /= mean.units
    expected = nn.utils.clip_grad_norm_(theirs.parameters(), clip)
    torch.testing.assert_close(settle_gradients(ours.parameters(), units=loss.units, clip=clip), expected)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_clip_zero_only_divides():
    ours, sums = toy_model(), toy_model()
    loss, _ = gradients(ours), gradients(sums)
    settle_gradients(ours.parameters(), units=loss.units, clip=0.0)
    for a, b in zip(ours.parameters(), sums.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad / 4)


def test_only_matrices_decay():
    # With gradients of zero, Adam moves nothing: what is left of a step is the decay w ← w (1 − lr·λ).
    model = toy_model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = build_optimiser(model, TrainingOptions(learning_rate=0.5, weight_decay=0.2))
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimiser.step()
    for name, p in model.named_parameters():
        factor = 0.9 if p.ndim > 1 else 1.0
        torch.testing.assert_close(p.detach(), before[name] * factor)


def test_frozen_weights_are_left_out():
    model = toy_model()
    model[0].requires_grad_(False)
    optimiser = build_optimiser(model, TrainingOptions())
    held = {id(p) for group in optimiser.param_groups for p in group["params"]}
    assert held == {id(p) for p in model.parameters() if p.requires_grad}


def stepped():
    model = toy_model()
    optimiser = build_optimiser(model, TrainingOptions())
    gradients(model)
    optimiser.step()
    return model, optimiser


def test_restored_moments_continue_as_the_originals():
    model, optimiser = stepped()
    copy = toy_model()
    copy.load_state_dict(model.state_dict())
    restored = build_optimiser(copy, TrainingOptions())
    restore_moments(copy, restored, {k: v.clone() for k, v in moments(model, optimiser).items()}, HERE)
    for m, o in ((model, optimiser), (copy, restored)):
        m.zero_grad()
        gradients(m)
        o.step()
    for a, b in zip(model.parameters(), copy.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda found: found.pop("0.weight.step"), "'0.weight.step'"),
        (lambda found: found.update({"0.weight.exp_avg": torch.zeros(2)}), "'0.weight.exp_avg'"),
        (lambda found: found.update({"9.weight.exp_avg": torch.zeros(2)}), "'9.weight.exp_avg'"),
    ],
)
def test_moments_of_another_model_are_refused_by_name(change, named):
    model, optimiser = stepped()
    found = moments(model, optimiser)
    change(found)
    with pytest.raises(ModelFormatError, match=named):
        restore_moments(model, optimiser, found, HERE)


def test_a_parameter_without_a_gradient_has_no_moments():
    model = toy_model()
    optimiser = build_optimiser(model, TrainingOptions())
    assert moments(model, optimiser) == {}
    restore_moments(model, optimiser, {}, HERE)
    assert moments(model, optimiser) == {}
