"""Padded batches for peers that bring no batching of their own: like lengths together, as few empty cells as can be."""

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

PAD, BOS, EOS = 0, 2, 3
Pair = tuple[list[int], list[int]]


def read_pairs(folder: Path) -> list[Pair]:
    """The training sentences as ids, each closed by the end token."""
    sides = [
        [[*map(int, line.split()), EOS] for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("train.source", "train.target")
    ]
    return list(zip(*sides, strict=True))


def cut(pairs: list[Pair], batch_tokens: int) -> list[list[Pair]]:
    """The pairs in order of length, in pieces of rows · longest side ≤ `batch_tokens`."""
    batches: list[list[Pair]] = [[]]
    for pair in sorted(pairs, key=lambda pair: (max(map(len, pair)), len(pair[0]), len(pair[1]))):
        longest = max(map(len, pair))  # of all so far
        if batches[-1] and longest * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
        batches[-1].append(pair)
    return batches


def rectangle(rows: list[list[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def forever(folder: Path, batch_tokens: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Source, decoder input and target of batch after batch, shuffled anew in every epoch."""
    batches, rng = cut(read_pairs(folder), batch_tokens), random.Random(1)
    while True:
        for batch in rng.sample(batches, len(batches)):
            source, target = rectangle([s for s, _ in batch]), rectangle([t for _, t in batch])
            inputs = target.roll(1, 1)
            inputs[:, 0] = BOS
            yield source, inputs, target
