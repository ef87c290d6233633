from pathlib import Path

import pytest
import torch
from torch import nn
from toy_task import Toy, toy_model

from regard.errors import ModelFormatError
from regard.training.crew import Crew
from regard.training.optimiser import build_optimisers, held, moments, restore_moments
from regard.training.options import TrainingOptions
from regard.training.update import Update

HERE = Path("optimiser.safetensors")


def gradients(model):
    task = Toy()
    torch.manual_seed(1)
    loss = task.loss(model, task.collate(task.largest(), 0))
    loss.total.backward()
    return loss


def updated(model, units, clip, size):
    """The norm of the gradients on a model, which then takes a step along them, divided and clipped."""
    with Crew(model, Toy(), size) as crew:
        update = Update(model, crew, TrainingOptions(clip=clip))
        norm = crew.gather() / units
        update.step(1, 0.1, norm, units)
    return norm


def torch_updated(model, units, clip):
    """The same by torch's own functions."""
    for p in model.parameters():
        p.grad /= units
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip or torch.inf)
    options = TrainingOptions()
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    torch.optim.AdamW(groups, lr=0.1, betas=options.betas, eps=options.epsilon).step()
    return norm.item()


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("clip", [0.01, 100.0, 0.0])
def test_division_clipping_and_the_step_agree_with_torch(clip, size, native, monkeypatch):
    if not native:
        monkeypatch.setattr("regard.native.update.library", None)
    ours, theirs = toy_model(), toy_model()
    loss, same = gradients(ours), gradients(theirs)
    assert updated(ours, loss.units, clip, size) == pytest.approx(torch_updated(theirs, same.units, clip))
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_only_matrices_decay():
    # With gradients of zero, Adam moves nothing: what is left of a step is the decay w ← w (1 − lr·λ).
    model = toy_model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    (optimiser,) = build_optimisers(model, TrainingOptions(learning_rate=0.5, weight_decay=0.2), 1)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimiser.take(optimiser.param_groups[0]["lr"], 1.0)
    for name, p in model.named_parameters():
        factor = 0.9 if p.ndim > 1 else 1.0
        torch.testing.assert_close(p.detach(), before[name] * factor)


def test_frozen_weights_are_left_out():
    model = toy_model()
    model[0].requires_grad_(False)
    (optimiser,) = build_optimisers(model, TrainingOptions(), 1)
    assert {id(p) for p in held(optimiser)} == {id(p) for p in model.parameters() if p.requires_grad}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
@pytest.mark.parametrize("parts", [2, 3, 9])
def test_in_parts_every_weight_takes_the_same_step_to_the_bit(kind, parts):
    options = TrainingOptions(optimiser=kind, learning_rate=0.1, rest_rate=3, weight_decay=0.2)
    one, other = toy_model(), toy_model()
    whole, several = build_optimisers(one, options, 1), build_optimisers(other, options, parts)
    assert len(several) > 1
    for _ in range(2):
        for model, optimisers in ((one, whole), (other, several)):
            model.zero_grad()
            gradients(model)
            for optimiser in optimisers:
                optimiser.take(0.1, 1.0)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    ours, theirs = moments(other, several), moments(one, whole)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def stepped():
    model = toy_model()
    optimisers = build_optimisers(model, TrainingOptions(), 2)
    gradients(model)
    for optimiser in optimisers:
        optimiser.take(optimiser.param_groups[0]["lr"], 1.0)
    return model, optimisers


def test_restored_moments_continue_as_the_originals():
    model, optimisers = stepped()
    copy = toy_model()
    copy.load_state_dict(model.state_dict())
    restored = build_optimisers(copy, TrainingOptions(), 3)  # another number of threads
    restore_moments(copy, restored, {k: v.clone() for k, v in moments(model, optimisers).items()}, HERE)
    for m, parts in ((model, optimisers), (copy, restored)):
        m.zero_grad()
        gradients(m)
        for part in parts:
            part.take(part.param_groups[0]["lr"], 1.0)
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
    model, optimisers = stepped()
    found = moments(model, optimisers)
    change(found)
    with pytest.raises(ModelFormatError, match=named):
        restore_moments(model, optimisers, found, HERE)


def test_a_parameter_without_a_gradient_has_no_moments():
    model = toy_model()
    optimisers = build_optimisers(model, TrainingOptions(), 2)
    assert moments(model, optimisers) == {}
    restore_moments(model, optimisers, {}, HERE)
    assert moments(model, optimisers) == {}
