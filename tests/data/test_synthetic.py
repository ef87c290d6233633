"""Reversed digits."""

import pytest

from regard.data.synthetic import reversals
from regard.errors import DataError


def test_a_target_read_backwards_is_its_source():
    for pair in reversals(50, seed=1, shortest=2, longest=5):
        assert "".join(reversed(pair.target)) == pair.source
        assert pair.source.isdigit()


def test_every_length_of_the_range_occurs_and_no_other():
    assert {len(pair.source) for pair in reversals(200, seed=0, shortest=2, longest=6)} == {2, 3, 4, 5, 6}


def test_sources_are_different_and_the_seed_decides_them():
    pairs = reversals(300, seed=7)
    assert len({pair.source for pair in pairs}) == 300
    assert pairs == reversals(300, seed=7)
    assert pairs != reversals(300, seed=8)


def test_all_strings_can_be_had_and_not_one_more():
    assert {pair.source for pair in reversals(10, seed=0, shortest=1, longest=1)} == set("0123456789")
    with pytest.raises(DataError, match="found 10 strings of 1 to 1 digits"):
        reversals(11, seed=0, shortest=1, longest=1)
