"""Noise is a function of its generator, and spares what it says it spares."""

import random

from regard.data.noise import DROPPED, REACH, drop_words, noised
from regard.text.special import UNK

WORDS = [f"w{i}" for i in range(2000)]


def test_a_dropped_word_leaves_its_place_and_the_others_stay():
    ids = list(range(10, 5010))
    found = drop_words(ids, 0.2, random.Random(3))
    assert all(new in (old, UNK) for old, new in zip(ids, found, strict=True))
    assert abs(found.count(UNK) - 1000) < 120  # four standard deviations
    assert drop_words(ids, 0.2, random.Random(3)) == found != drop_words(ids, 0.2, random.Random(4))
    assert drop_words(ids, 0.0, random.Random(3)) == ids
    assert drop_words([], 0.5, random.Random(3)) == []


def test_noise_leaves_out_a_tenth_and_adds_nothing():
    kept = noised(" ".join(WORDS), random.Random(5)).split()
    assert len(set(kept)) == len(kept)
    assert set(kept) < set(WORDS)
    assert abs(len(kept) - (1 - DROPPED) * len(WORDS)) < 60


def test_noise_moves_a_word_by_a_few_places():
    kept = noised(" ".join(WORDS), random.Random(5)).split()
    before = sorted(kept, key=lambda word: int(word[1:]))
    moves = [abs(before.index(word) - place) for place, word in enumerate(kept)]
    assert max(moves) == REACH
    assert min(moves) == 0


def test_noise_never_leaves_nothing():
    assert {noised("one", random.Random(seed)) for seed in range(99)} == {"one"}
    assert noised("", random.Random(1)) == ""
    assert all(noised("one two", random.Random(seed)) for seed in range(999))
