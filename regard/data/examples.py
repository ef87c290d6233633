"""Text as token ids, ready to be put into batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Int32

from regard.data.pairs import Pair
from regard.text.tokeniser import Tokeniser


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """Token ids of one pair, without start and end token; arrays take a quarter of the memory of lists."""

    source: Int32[np.ndarray, " s"]
    target: Int32[np.ndarray, " t"]


def encode(
    pairs: Iterable[Pair], source: Tokeniser, target: Tokeniser, max_tokens: int
) -> tuple[list[Example], list[Pair]]:
    """The examples in order, and the pairs they come from: those that are not too long.

    Too long: more than `max_tokens` tokens on either side, counting the end token that a batch adds.
    """
    examples, kept = [], []
    for pair in pairs:
        example = Example(_ids(source.encode(pair.source)), _ids(target.encode(pair.target)))
        if max(len(example.source), len(example.target)) + 1 <= max_tokens:
            examples.append(example)
            kept.append(pair)
    return examples, kept


def lengths(examples: Sequence[Example]) -> Int[np.ndarray, "examples 2"]:
    """Source and target token counts, the end token included: what `plan_epoch` reads."""
    counts = [(len(example.source) + 1, len(example.target) + 1) for example in examples]
    return np.array(counts, dtype=np.int64).reshape(-1, 2)


def _ids(tokens: Sequence[int]) -> Int32[np.ndarray, " tokens"]:
    return np.array(tokens, dtype=np.int32)
