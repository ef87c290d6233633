"""Stretches of tokens replaced by sentinels, and the target that fills them in. Raffel et al. 2020, §3.1.4."""

from typing import Annotated

import numpy as np
from jaxtyping import Bool, Int, Int32
from pydantic import Field

from regard.data.examples import Example
from regard.errors import DataError
from regard.section import Section
from regard.text.special import sentinel
from regard.text.tokeniser import Tokeniser


def find_sentinels(tokeniser: Tokeniser) -> range:
    """The ids that may stand for a stretch, in their order; a vocabulary without any is refused."""
    ids = {tokeniser.name(id): id for id in range(len(tokeniser))}
    first = ids.get(sentinel(0))
    if first is None:
        raise DataError(
            "text.sentinels: this vocabulary has none to stand for what is left out; set text.sentinels=100"
        )
    count = 1
    while ids.get(sentinel(count)) == first + count:
        count += 1
    return range(first, first + count)


class SpanOptions(Section):
    density: Annotated[float, Field(gt=0, lt=1)] = 0.15  # of the tokens that are left out
    mean_length: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 3.0  # of a stretch, in tokens


def corrupt(ids: Int32[np.ndarray, " t"], sentinels: range, options: SpanOptions, rng: np.random.Generator) -> Example:
    """a b c d e f → source a ⟨0⟩ d ⟨1⟩, target ⟨0⟩ b c ⟨1⟩ e f; the sentinels are those ids, in their order.

    There is no last sentinel, as in the published code (the paper's figure has one): an end token follows instead.
    """
    noise = noise_mask(len(ids), options, rng)
    first = noise & ~np.concatenate([[False], noise[:-1]])
    spans = int(first.sum())
    if spans > len(sentinels):
        raise DataError(
            f"span corruption: {len(ids)} tokens with density {options.density} and mean length {options.mean_length} "
            f"make {spans} spans, the vocabulary has {len(sentinels)} sentinels; use shorter rows or longer spans"
        )
    names = np.array(sentinels[:spans], dtype=np.int32)
    marked = ids.copy()
    marked[first] = names
    target = np.insert(ids[noise], np.flatnonzero(first[noise]), names)
    return Example(marked[~noise | first], target.astype(np.int32))


def noise_mask(length: int, options: SpanOptions, rng: np.random.Generator) -> Bool[np.ndarray, " t"]:
    """True where a token is left out: kept and left-out stretches in turn, beginning with a kept one.

    Tokens left out: round(length · density), at least 1, at most length − 1; stretches: round(that / mean length), at
    least 1. Both kinds of stretches are cut at random, every way being equally likely. Fewer than two tokens stay.
    """
    if length < 2:
        return np.zeros(length, dtype=bool)
    tokens = min(max(round(length * options.density), 1), length - 1)
    spans = min(max(round(tokens / options.mean_length), 1), length - tokens)
    lengths = np.stack([segment(length - tokens, spans, rng), segment(tokens, spans, rng)], axis=1)
    return np.repeat(np.tile([False, True], spans), lengths.ravel())


def segment(items: int, parts: int, rng: np.random.Generator) -> Int[np.ndarray, " parts"]:
    """Lengths ≥ 1 of `parts` pieces of `items`, uniformly among all ways to cut."""
    cuts = np.sort(rng.permutation(items - 1)[: parts - 1]) + 1
    return np.diff(np.concatenate([[0], cuts, [items]]))
