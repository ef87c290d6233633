"""What is told of a head: entropy between its bounds, and roles that a head made for them has and an even one lacks."""

import math

import pytest
import torch

from regard.explaining.roles import agreement, along_diagonal, at_distance, best_layer, entropy, even, roles, share

NONE = torch.zeros(7, dtype=torch.bool)


def looking(places, strength=0.9):
    """A head of 7 × 7 that gives this much to one place each, and the rest to all others alike."""
    weights = torch.full((7, 7), (1 - strength) / 6, dtype=torch.float64)
    for query, key in enumerate(places):
        weights[query, key] = strength
    return weights


def causal(weights):
    seen = weights.tril()
    return seen / seen.sum(-1, keepdim=True)


EVEN = torch.full((7, 7), 1 / 7, dtype=torch.float64)


# ---------------------------------------------------------------- entropy
def test_entropy_is_zero_for_one_key_and_the_logarithm_of_their_number_for_all():
    assert entropy(torch.eye(5, dtype=torch.float64)).item() == 0
    assert entropy(EVEN).item() == pytest.approx(math.log(7))


def test_entropy_worked_by_hand():
    weights = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]], dtype=torch.float64)
    first = 0.5 * math.log(2) + 2 * 0.25 * math.log(4)
    assert entropy(weights).item() == pytest.approx(first / 2)


def test_a_query_that_sees_nothing_does_not_count():
    weights = torch.tensor([[0.5, 0.5], [0.0, 0.0]], dtype=torch.float64)
    assert entropy(weights).item() == pytest.approx(math.log(2))
    assert entropy(torch.zeros(2, 3)).item() == 0
    assert share(weights, torch.tensor([[True, False], [True, False]])).item() == 0.5


def test_each_head_of_several_has_its_own_figures():
    torch.manual_seed(2)
    heads = torch.randn(3, 4, 5, dtype=torch.float64).softmax(-1)
    marked = torch.rand(4, 5) > 0.5
    for measure in (entropy, agreement, lambda weights: share(weights, marked)):
        torch.testing.assert_close(measure(heads), torch.stack([measure(head) for head in heads]))


# ---------------------------------------------------------------- roles
@pytest.mark.parametrize(
    ("kind", "role", "weights"),
    [
        ("encoder", "previous", looking([3, 0, 1, 2, 3, 4, 5])),
        ("encoder", "next", looking([1, 2, 3, 4, 5, 6, 2])),
        ("encoder", "diagonal", looking(range(7))),
        ("decoder", "previous", causal(looking([0, 0, 1, 2, 3, 4, 5]))),
        ("decoder", "diagonal", causal(looking(range(7)))),
        ("cross", "diagonal", looking([0, 2, 2, 3, 5, 5, 5])),
    ],
)
def test_a_head_that_was_made_for_a_role_has_that_role_alone(kind, role, weights):
    assert roles(weights, kind, NONE) == (role,)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_an_even_head_has_no_role_however_short_the_text(kind):
    for size in range(1, 9):
        weights = torch.full((size, size), 1 / size, dtype=torch.float64)
        marks = torch.zeros(size, dtype=torch.bool)
        marks[-1] = True
        assert roles(causal(weights) if kind == "decoder" else weights, kind, marks) == ()


@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_a_head_that_rests_on_the_separators_has_their_role(kind):
    marks = torch.tensor([False, False, True, False, False, False, True])
    assert roles(looking([6, 2, 6, 6, 2, 2, 2]), kind, marks) == ("separator",)
    assert roles(looking([6, 2, 6, 6, 2, 2, 2]), kind, NONE) == ()


def test_half_of_the_attention_makes_a_role_and_less_does_not():
    places = [3, 0, 1, 2, 3, 4, 5]
    assert roles(looking(places, 0.501), "encoder", NONE) == ("previous",)
    assert roles(looking(places, 0.499), "encoder", NONE) == ()


def test_turning_a_text_around_swaps_previous_and_next():
    weights = looking([3, 0, 1, 2, 3, 4, 5])
    assert roles(weights.flip(0, 1), "encoder", NONE) == ("next",)


def test_neighbours_mean_nothing_across_texts():
    assert "previous" not in roles(looking([3, 0, 1, 2, 3, 4, 5]), "cross", NONE)


# ---------------------------------------------------------------- places
def test_places_are_those_of_a_loop():
    for queries, keys in ((3, 5), (4, 4), (5, 2), (1, 3)):
        for distance in (-1, 0, 1):
            expected = [[k - q == distance for k in range(keys)] for q in range(queries)]
            assert at_distance(queries, keys, distance).tolist() == expected
        line = [[abs(k - q * (keys - 1) / max(queries - 1, 1)) <= 1 for k in range(keys)] for q in range(queries)]
        assert along_diagonal(queries, keys).tolist() == line


def test_an_even_head_spreads_over_what_is_seen():
    assert even(torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.0, 0.0]])).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


# ---------------------------------------------------------------- agreement
def mutual(weights):
    """By loops: pairs of which each is the other's first choice, over all that choose."""
    rows, columns = weights.tolist(), weights.T.tolist()
    found = sum(
        row.index(max(row)) == k and column.index(max(column)) == q
        for q, row in enumerate(rows)
        for k, column in enumerate(columns)
    )
    return 2 * found / (len(rows) + len(columns))


def test_agreement_counts_those_that_choose_each_other():
    torch.manual_seed(3)
    for size in ((1, 1), (4, 5), (6, 3)):
        for _ in range(20):
            weights = torch.randn(size, dtype=torch.float64).softmax(-1)
            assert agreement(weights).item() == pytest.approx(mutual(weights))


def test_a_permutation_agrees_most_and_even_attention_least():
    permutation = torch.eye(4, dtype=torch.float64)[[2, 0, 3, 1]]
    assert agreement(permutation).item() == 1
    assert agreement(torch.full((4, 4), 0.25, dtype=torch.float64)).item() == 0.25
    to_the_end = torch.tensor([[0.0, 0.0, 1.0]] * 4)
    assert agreement(to_the_end).item() == pytest.approx(2 / 7)
    assert agreement(permutation[:, [3, 0, 2, 1]]).item() == 1  # whatever the order of the words


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_best_layer_agrees_most_on_average(best):
    permutation, even = torch.eye(4)[[2, 0, 3, 1]], torch.full((4, 4), 0.25)
    texts = [[permutation if layer == best else even for layer in range(3)] for _ in range(2)]
    assert best_layer(texts) == best
    misled = [permutation if layer != best else even for layer in range(3)]
    assert best_layer([*texts, misled]) == best  # two of three texts say so
    assert best_layer([[even] * 3]) == 2
