import torch

from regard.layers import masks


def test_padding_shows_as_many_positions_as_the_length_says():
    assert masks.padding(torch.tensor([2, 0, 3]), 3).tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_the_last_query_stands_at_the_last_key():
    assert masks.offsets(2, 4).tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]


def test_causal_shows_itself_and_the_past_only():
    for queries, keys in ((3, 3), (2, 5), (1, 4)):
        rows = [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]
        assert masks.causal(queries, keys).tolist() == rows


def test_a_window_shows_what_is_near_on_each_side():
    rows = [[-2 <= j - i <= 1 for j in range(5)] for i in range(5)]
    assert masks.window(5, 5, behind=2, ahead=1).tolist() == rows
    assert masks.window(2, 5, behind=2, ahead=1).tolist() == rows[3:]


def test_both_is_the_conjunction_and_none_hides_nothing():
    first, second = torch.tensor([[True, False]]), torch.tensor([[True, True], [False, True]])
    assert masks.both(None, None) is None
    assert masks.both(first, None) is first
    assert masks.both(None, second) is second
    combined = masks.both(first, second)
    assert combined is not None
    assert combined.tolist() == [[True, False], [False, False]]
