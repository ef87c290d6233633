"""The loss of guided attention: a cross-entropy between where a head looks and where it should."""

import math

import pytest
import torch

from regard.layers.guidance import alignment_cross_entropy


def rows(*shape, seed):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)


def test_the_loss_is_a_plain_sum_over_cells():
    weights, gold = rows(2, 3, 5, seed=1), rows(2, 3, 5, seed=2)
    expected = -sum(
        gold[n, t, s].item() * math.log(weights[n, t, s].item()) for n in range(2) for t in range(3) for s in range(5)
    )
    assert alignment_cross_entropy(weights, gold).item() == pytest.approx(expected, rel=1e-6)


def test_a_token_of_which_nothing_is_known_costs_nothing():
    """−log ½ for the first token; the second has no row."""
    weights = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]])
    gold = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]])
    assert alignment_cross_entropy(weights, gold).item() == pytest.approx(math.log(2))


def test_of_two_passes_it_is_the_mean():
    first, second, gold = rows(2, 3, 5, seed=3), rows(2, 3, 5, seed=4), rows(2, 3, 5, seed=5)
    both = alignment_cross_entropy(torch.cat([first, second]), gold)
    torch.testing.assert_close(both, (alignment_cross_entropy(first, gold) + alignment_cross_entropy(second, gold)) / 2)


def test_it_is_least_where_the_head_looks_as_it_should():
    gold = rows(2, 3, 5, seed=6)
    least = alignment_cross_entropy(gold, gold)
    assert all(alignment_cross_entropy(rows(2, 3, 5, seed=seed), gold) > least for seed in range(7, 17))


def test_a_weight_of_nothing_has_a_finite_gradient():
    scores = torch.tensor([[[0.0, 300.0]]], requires_grad=True)
    loss = alignment_cross_entropy(scores.softmax(-1), torch.tensor([[[1.0, 0.0]]]))
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()
