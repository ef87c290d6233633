"""What an encoder reads: frames around texts, and what is cut off where they are too long."""

import itertools

import pytest

from regard.data.framing import framed, shortened
from regard.text.special import BOS, EOS


def test_a_text_stands_between_start_and_end_and_a_second_one_is_told_apart():
    assert framed([5, 6], None) == ([BOS, 5, 6, EOS], [0, 0, 0, 0])
    assert framed([5, 6], [7]) == ([BOS, 5, 6, EOS, 7, EOS], [0, 0, 0, 0, 1, 1])


def one_by_one(first, second, most):
    """Takes the last token of the longer text, of the second where both are equal, until all fits."""
    first, second = list(first), list(second)
    while len(first) + len(second) + 3 > most:
        (first if len(first) > len(second) else second).pop()
    return first, second


@pytest.mark.parametrize("most", range(5, 15))
def test_the_longer_of_two_texts_is_cut_first(most):
    for one, two in itertools.product(range(1, 9), repeat=2):
        first, second = list(range(10, 10 + one)), list(range(20, 20 + two))
        assert shortened(first, second, most) == one_by_one(first, second, most)


@pytest.mark.parametrize("length", range(7))
def test_a_single_text_is_cut_at_its_end_and_only_if_it_must_be(length):
    cut, second = shortened(list(range(length)), None, 6)
    assert cut == list(range(min(length, 4)))
    assert second is None
