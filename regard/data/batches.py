"""Which examples make up each batch of an epoch: like lengths together, in a new mixture every epoch.

`lengths` counts tokens per example, the end token included: one row per example, source beside target.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

POOL = 100  # batches sorted together: fewer mix better and pad more; 100 keeps Multi30k below 5 % padding
JITTER = 1.0  # tokens of noise on the difference of the two sides, so that neighbours change between epochs


@dataclass(frozen=True, slots=True)
class Share:
    """`size` successive examples that appear `weight` times as often as those of a corpus of weight 1."""

    size: int
    weight: float = 1.0


def plan_epoch(
    lengths: Int[np.ndarray, "examples 2"], shares: Sequence[Share], batch_tokens: int, seed: int, epoch: int
) -> list[Int[np.ndarray, " rows"]]:
    """Batches of example indices with rows · max(longest source, longest target) ≤ `batch_tokens`.

    A pure function of its arguments. An example that exceeds the budget by itself gets a batch of its own.
    """
    if sum(share.size for share in shares) != len(lengths):
        raise ValueError(f"the shares cover {sum(share.size for share in shares)} examples, lengths {len(lengths)}")
    rng = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
    drawn = rng.permutation(draw(shares, rng))
    if not len(drawn):
        return []
    pools = max(1, int(lengths[drawn].max(1).sum()) // (POOL * batch_tokens))
    plan: list[np.ndarray] = []
    for pool in np.array_split(drawn, pools):
        ordered = pool[snake(lengths[pool], rng)]
        # A first batch of random size moves every later boundary.
        first = int(rng.integers(1, 1 + max(1, batch_tokens // int(lengths[ordered[0]].max()))))
        plan += cut(ordered[:first], lengths, batch_tokens) + cut(ordered[first:], lengths, batch_tokens)
    return [plan[i] for i in rng.permutation(len(plan))]


def draw(shares: Sequence[Share], rng: np.random.Generator) -> Int[np.ndarray, " drawn"]:
    """Indices of one epoch: ⌊w⌋ copies of each corpus, and a fresh random part of it for the fraction of w."""
    drawn, start = [np.zeros(0, dtype=np.int64)], 0
    for share in shares:
        indices = np.arange(start, start + share.size)
        copies = int(share.weight)
        part = round((share.weight - copies) * share.size)
        drawn += [np.tile(indices, copies), rng.permutation(indices)[:part]]
        start += share.size
    return np.concatenate(drawn)


def snake(lengths: Int[np.ndarray, "examples 2"], rng: np.random.Generator) -> Int[np.ndarray, " examples"]:
    """An order whose neighbours are alike on both sides: by the longer side, then by source − target, there and back.

    Turning round at each length keeps the batch that straddles two lengths from mixing opposite ends.
    """
    longer = lengths.max(1)
    difference = lengths[:, 0] - lengths[:, 1] + rng.uniform(-JITTER, JITTER, len(lengths))
    turned = np.where(longer % 2 == rng.integers(2), difference, -difference)
    return np.lexsort((turned, longer))


def cut(
    order: Int[np.ndarray, " examples"], lengths: Int[np.ndarray, "all 2"], batch_tokens: int
) -> list[Int[np.ndarray, " rows"]]:
    """Successive pieces of `order`, each as long as the budget allows."""
    pieces, start, widest = [], 0, 0
    for end, width in enumerate(lengths[order].max(1).tolist()):
        widest = max(widest, width)
        if end > start and (end - start + 1) * widest > batch_tokens:
            pieces.append(order[start:end])
            start, widest = end, width
    if start < len(order):
        pieces.append(order[start:])
    return pieces


def divide(
    rows: Int[np.ndarray, " rows"], lengths: Int[np.ndarray, "examples 2"], parts: int
) -> list[Int[np.ndarray, " _"]]:
    """A batch in at most so many parts of about as many cells each, those with like differences of the sides together.

    A part is then padded less than the whole: no longer source is beside the longest target.
    """
    if parts < 2 or len(rows) < 2:
        return [rows]
    rows = rows[np.argsort(lengths[rows, 0] - lengths[rows, 1], kind="stable")]
    counts = np.arange(1, len(rows))
    before, behind = (counts * np.maximum.accumulate(lengths[some])[:-1].sum(1) for some in (rows, rows[::-1]))
    first = parts // 2
    cut = 1 + int(np.argmin(np.maximum(before / first, behind[::-1] / (parts - first))))
    return divide(rows[:cut], lengths, first) + divide(rows[cut:], lengths, parts - first)


def padding(plan: Sequence[Int[np.ndarray, " _"]], lengths: Int[np.ndarray, "examples 2"]) -> float:
    """Share of the cells of all batches, source and target together, that hold no token."""
    cells = sum(cells_of(rows, lengths) for rows in plan)
    return 1 - sum(int(lengths[rows].sum()) for rows in plan) / cells if cells else 0.0


def largest(plan: Sequence[Int[np.ndarray, " _"]], lengths: Int[np.ndarray, "examples 2"]) -> Int[np.ndarray, " rows"]:
    """The batch with most cells: whoever has memory for it has memory for the epoch."""
    return max(plan, key=lambda rows: cells_of(rows, lengths))


def cells_of(rows: Int[np.ndarray, " rows"], lengths: Int[np.ndarray, "examples 2"]) -> int:
    return len(rows) * int(lengths[rows].max(0).sum())
