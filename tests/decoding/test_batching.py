import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.batching import order_by_length
from regard.errors import DecodingError

lengths_of_sentences = st.lists(st.integers(0, 30), max_size=40)


@given(lengths_of_sentences, st.integers(1, 100))
def test_every_index_is_in_exactly_one_group(lengths, budget):
    groups = order_by_length(lengths, budget)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))


@given(lengths_of_sentences, st.integers(1, 100))
def test_a_group_keeps_to_the_budget_unless_it_is_one_sentence(lengths, budget):
    for group in order_by_length(lengths, budget):
        assert len(group) == 1 or max(lengths[i] for i in group) * len(group) <= budget


@given(lengths_of_sentences, st.integers(1, 100))
def test_lengths_never_rise(lengths, budget):
    flat = [lengths[index] for group in order_by_length(lengths, budget) for index in group]
    assert flat == sorted(lengths, reverse=True)


def test_groups_worked_by_hand():
    assert order_by_length([2, 9, 3, 4, 3], 8) == [[1], [3, 2], [4, 0]]


def test_a_budget_below_one_is_refused():
    with pytest.raises(DecodingError, match="found 0"):
        order_by_length([1], 0)
