import pytest
import torch
from torch import nn
from toy_task import Toy, toy_model

from regard.errors import ModelFormatError
from regard.training.muon import QUINTIC, Muon, hidden_matrices, orthogonal
from regard.training.optimiser import build_optimisers, moments, restore_moments
from regard.training.options import TrainingOptions

OPTIONS = TrainingOptions(optimiser="muon", learning_rate=0.01, weight_decay=0.5)


@pytest.mark.parametrize("shape", [(5, 5), (4, 9), (9, 4)])
def test_every_singular_value_comes_near_one_and_the_directions_stay(shape):
    torch.manual_seed(1)
    matrix = torch.randn(shape, dtype=torch.double)
    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    found = orthogonal(matrix, rounds=10)
    values = (u.mT @ found @ vt.mT).diagonal()
    assert ((values > 0.6) & (values < 1.3)).all()
    torch.testing.assert_close(u * values @ vt, found)


def round_by_round(x, rounds):
    a, b, c = QUINTIC
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        x = a * x + b * x @ x.mT @ x + c * x @ x.mT @ x @ x.mT @ x
    return x


@pytest.mark.parametrize("shape", [(48, 48), (16, 96), (96, 16)])
@pytest.mark.parametrize("powers", [0, 2, 6])  # of ten, between the largest and the smallest singular value
def test_rounds_in_the_gram_matrix_are_rounds_in_the_matrix(shape, powers):
    torch.manual_seed(2)
    u, s, vt = torch.linalg.svd(torch.randn(shape, dtype=torch.double), full_matrices=False)
    matrix = u * torch.logspace(0, -powers, len(s), dtype=torch.double) @ vt
    expected = round_by_round(matrix, 5)
    torch.testing.assert_close(orthogonal(matrix), expected)
    torch.testing.assert_close(orthogonal(matrix.float()).double(), expected, rtol=0, atol=1e-3)


def test_only_maps_between_layers_are_orthogonalised():
    model = nn.ModuleDict(
        {"words": nn.Embedding(6, 4), "map": nn.Linear(4, 8), "table": nn.Linear(4, 33), "norm": nn.LayerNorm(4)}
    )
    assert [id(p) for p in hidden_matrices(model)] == [id(model["map"].weight)]


def step(model, optimiser, rate=OPTIONS.learning_rate):
    task = Toy()
    torch.manual_seed(1)
    task.loss(model, task.collate(task.largest(), 0)).total.backward()
    optimiser.take(rate, 1.0)


@pytest.mark.parametrize("pace", [1.0, 3.0])
def test_the_first_step_is_the_equation_for_matrices_and_adamw_at_its_own_rate_for_the_rest(pace):
    ours, theirs = toy_model(), toy_model()
    (optimiser,) = build_optimisers(ours, OPTIONS.model_copy(update={"rest_rate": pace}), 1)
    assert isinstance(optimiser, Muon)
    before = {name: p.detach().clone() for name, p in ours.named_parameters()}
    matrices = {id(p) for p in optimiser.matrices}
    step(ours, optimiser)
    (plain,) = build_optimisers(theirs, OPTIONS.model_copy(update={"optimiser": "adamw"}), 1)
    step(theirs, plain, pace * OPTIONS.learning_rate)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if id(p) in matrices:
            blend = (1 - 0.95) * p.grad + 0.95 * 0.05 * p.grad
            wanted = before[name] * (1 - 0.01 * 0.5) - 0.2 * 0.01 * max(p.shape) ** 0.5 * orthogonal(blend)
            torch.testing.assert_close(p.detach(), wanted)
        else:
            torch.testing.assert_close(p, q)
    assert matrices


def test_what_muon_remembers_survives_the_journey_to_disk(tmp_path):
    first, second = toy_model(), toy_model()
    (one,), (two,) = build_optimisers(first, OPTIONS, 1), build_optimisers(second, OPTIONS, 1)
    step(first, one)
    second.load_state_dict(first.state_dict())
    restore_moments(second, [two], {name: x.clone() for name, x in moments(first, [one]).items()}, tmp_path)
    one.zero_grad()
    assert all(p.grad is None for p in first.parameters())
    step(first, one)
    step(second, two)
    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(p, q)


def test_the_memory_of_another_optimiser_is_refused(tmp_path):
    model = toy_model()
    (adam,) = build_optimisers(model, OPTIONS.model_copy(update={"optimiser": "adamw"}), 1)
    step(model, adam)
    with pytest.raises(ModelFormatError, match="unknown tensor"):
        restore_moments(model, build_optimisers(model, OPTIONS, 1), moments(model, [adam]), tmp_path)
