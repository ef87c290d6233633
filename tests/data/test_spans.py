"""Source and target of span corruption hold the whole text between them, by the published rounding."""

from collections import Counter
from math import comb

import numpy as np
import pytest
from pydantic import ValidationError

from regard.data.chance import chance
from regard.data.spans import SpanOptions, corrupt, noise_mask, segment
from regard.errors import DataError

SENTINELS = range(900, 1000)
OPTIONS = [SpanOptions(), SpanOptions(density=0.5, mean_length=1.0), SpanOptions(density=0.3, mean_length=5.5)]


def text(length: int) -> np.ndarray:
    return np.arange(4, 4 + length, dtype=np.int32)


def recombine(source: list[int], target: list[int]) -> list[int]:
    """Each sentinel of the source replaced by what follows it in the target."""
    spans: dict[int, list[int]] = {}
    for id in target:
        if id in SENTINELS:
            spans[id] = []
            last = id
        else:
            spans[last].append(id)
    return [token for id in source for token in (spans[id] if id in SENTINELS else [id])]


def published_counts(length: int, density: float, mean: float) -> tuple[int, int]:
    """Tokens and spans as in t5.data.preprocessors.random_spans_noise_mask."""
    tokens = int(np.round(length * density))
    tokens = min(max(tokens, 1), length - 1)
    return tokens, max(int(np.round(tokens / mean)), 1)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("length", [2, 3, 5, 17, 64, 150])
def test_source_and_target_recombine_to_the_text(length, options):
    for index in range(20):
        example = corrupt(text(length), SENTINELS, options, chance(0, 0, index))
        source, target = example.source.tolist(), example.target.tolist()
        assert recombine(source, target) == text(length).tolist()
        used = [id for id in source if id in SENTINELS]
        assert used == [id for id in target if id in SENTINELS] == list(SENTINELS[: len(used)])  # in their order
        assert len(source) + len(target) == length + 2 * len(used)
        assert example.source.dtype == example.target.dtype == np.int32


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("length", [2, 10, 30, 114, 512, 513])
def test_as_many_tokens_and_spans_are_left_out_as_the_published_recipe_says(length, options):
    tokens, spans = published_counts(length, options.density, options.mean_length)
    for index in range(10):
        noise = noise_mask(length, options, chance(0, 1, index))
        edges = np.diff(np.concatenate([[0], noise.astype(int), [0]]))
        assert len(noise) == length
        assert noise.sum() == tokens
        assert (edges == 1).sum() == spans  # neither overlapping nor adjacent, or there were fewer
        assert not noise[0]
        assert noise[-1]


def test_a_case_worked_by_hand():
    """Length 6, density 0.5, mean 1.5: 3 tokens in 2 spans, and the kept 3 in 2: two ways each."""
    options = SpanOptions(density=0.5, mean_length=1.5)
    found = set()
    for index in range(60):
        example = corrupt(text(6), SENTINELS, options, chance(0, 0, index))
        found.add((tuple(example.source.tolist()), tuple(example.target.tolist())))
    assert found == {
        ((4, 900, 6, 7, 901), (900, 5, 901, 8, 9)),
        ((4, 900, 7, 8, 901), (900, 5, 6, 901, 9)),
        ((4, 5, 900, 7, 901), (900, 6, 901, 8, 9)),
        ((4, 5, 900, 8, 901), (900, 6, 7, 901, 9)),
    }


def test_every_way_to_cut_is_equally_likely():
    rounds, ways, rng = 1500, comb(6, 2), chance(0, 0, 0)
    found = Counter(tuple(segment(7, 3, rng).tolist()) for _ in range(rounds))
    assert len(found) == ways
    assert all(sum(lengths) == 7 and min(lengths) >= 1 for lengths in found)
    expected = rounds / ways
    assert max(abs(count - expected) for count in found.values()) < 5 * (expected * (1 - 1 / ways)) ** 0.5


@pytest.mark.parametrize("length", [0, 1])
def test_a_text_too_short_to_lose_a_token_stays_whole(length):
    example = corrupt(text(length), SENTINELS, SpanOptions(), chance(0, 0, 0))
    assert example.source.tolist() == text(length).tolist()
    assert example.target.tolist() == []


def test_a_dense_recipe_keeps_a_token_between_any_two_spans():
    noise = noise_mask(10, SpanOptions(density=0.8, mean_length=1.0), chance(0, 0, 0))
    edges = np.diff(np.concatenate([[0], noise.astype(int), [0]]))
    assert noise.sum() == 8
    assert (edges == 1).sum() == 2  # as many as there are kept tokens


def test_the_same_seed_epoch_and_index_corrupt_alike():
    def drawn(*key: int) -> list[int]:
        return corrupt(text(80), SENTINELS, SpanOptions(), chance(*key)).source.tolist()

    assert drawn(1, 2, 3) == drawn(1, 2, 3)
    assert len({str(drawn(*key)) for key in [(1, 2, 3), (1, 2, 4), (1, 3, 3), (2, 2, 3)]}) == 4


def test_more_spans_than_sentinels_are_refused():
    with pytest.raises(DataError, match="make 26 spans, the vocabulary has 20 sentinels; use shorter rows"):
        corrupt(text(512), range(900, 920), SpanOptions(), chance(0, 0, 0))


@pytest.mark.parametrize("given", [{"density": 0}, {"density": 1}, {"mean_length": 0.5}, {"mean_length": float("inf")}])
def test_a_recipe_that_leaves_out_nothing_or_all_is_refused(given):
    with pytest.raises(ValidationError):
        SpanOptions(**given)
