"""How far apart two tokens stand: positions that act inside attention (relative bias, rotary, ALiBi)."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.positions import Sinusoid


@dataclass(frozen=True)
class Relative:
    """What a stack of layers shares for one call: a bias for each distance, or the angles that turn q and k.

    `bias[:, o]` belongs to one distance (key − query), rising by one, and the last is `queries − 1`: with k keys and
    q queries there are k + q − 1. By distance and not by pair, so that a window need not fill a square.
    """

    bias: Float[Tensor, "h o"] | None = None
    angles: Float[Tensor, "t e"] | None = None


@runtime_checkable
class Relation(Protocol):
    """`queries` new tokens follow `start` earlier ones; all of them are keys."""

    def __call__(self, queries: int, start: int) -> Relative: ...


def distances(queries: int, start: int, device: torch.device | None = None) -> Int[Tensor, " o"]:
    """Key − query for every pair that can occur: −(start + queries − 1) … queries − 1."""
    return torch.arange(1 - start - queries, queries, device=device)


class Unrelated(nn.Module):
    """Attention that knows no distance."""

    def forward(self, queries: int, start: int) -> Relative:  # noqa: ARG002
        return Relative()


# ---------------------------------------------------------------- ALiBi
def alibi_slopes(heads: int) -> list[float]:
    """m_i = 2^{−8i/h} for h a power of two; else those of the power below, then every other one of the power above.

    Press et al. 2022, §3, and its published code for the other head counts.
    """
    below = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * i / below) for i in range(1, below + 1)]
    between = [2.0 ** (-8 * i / (2 * below)) for i in range(1, 2 * below + 1, 2)]
    return slopes + between[: heads - below]


class Alibi(nn.Module):
    """bias(i, j) = −m |i − j|: the further, the fainter. Nothing is learned.

    Causal attention sees j ≤ i only, where this is the paper's m (j − i).
    """

    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.tensor(alibi_slopes(heads)), persistent=False)

    def forward(self, queries: int, start: int) -> Relative:
        return Relative(bias=-self.slopes[:, None] * distances(queries, start, self.slopes.device).abs())


# ---------------------------------------------------------------- relative bias
def buckets_both_ways(distance: Int[Tensor, " o"], buckets: int, farthest: int) -> Int[Tensor, " o"]:
    """The first half of the buckets for the past and the present, the second for the future."""
    half = buckets // 2
    return torch.where(distance > 0, half, 0) + bucket(distance.abs(), half, farthest)


def buckets_of_past(distance: Int[Tensor, " o"], buckets: int, farthest: int) -> Int[Tensor, " o"]:
    """All buckets for the past; the future, never seen, shares bucket 0."""
    return bucket((-distance).clamp(min=0), buckets, farthest)


def bucket(far: Int[Tensor, " o"], buckets: int, farthest: int) -> Int[Tensor, " o"]:
    """`far` itself below B/2, then B/2 + ⌊log(far / (B/2)) / log(farthest / (B/2)) · B/2⌋, at most B − 1.

    Raffel et al. 2020, §2.1: near tokens one by one, far ones in widening groups.
    """
    exact = buckets // 2
    ratio = torch.log(far.clamp(min=1).double() / exact) / math.log(farthest / exact)
    # A whisker above: log(2^a)/log(2^b) may round below the integer that it is.
    wide = exact + (ratio * (buckets - exact) + 1e-9).long()
    return torch.where(far < exact, far, wide.clamp(max=buckets - 1))


class RelativeBias(nn.Module):
    """bias(i, j) = b[head, bucket(j − i)], one trained value for each head and bucket, shared by the layers."""

    def __init__(self, heads: int, causal: bool, buckets: int, farthest: int) -> None:
        super().__init__()
        self.place = buckets_of_past if causal else buckets_both_ways
        self.buckets, self.farthest = buckets, farthest
        self.table = nn.Embedding(buckets, heads)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, queries: int, start: int) -> Relative:
        distance = distances(queries, start, self.table.weight.device)
        return Relative(bias=self.table(self.place(distance, self.buckets, self.farthest)).mT)


# ---------------------------------------------------------------- rotary
def rotate(x: Float[Tensor, "n h t e"], angles: Float[Tensor, "t e"]) -> Float[Tensor, "n h t e"]:
    """Each pair (x_{2i}, x_{2i+1}) turned by the angle pos / C^{2i/e}: q·k then depends on the distance alone.

    `angles` is a row of `sinusoids` for each position: sin and cos of its angles, by turns. Su et al. 2021, eq. 34.
    """
    sin, cos = angles[:, 0::2], angles[:, 1::2]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


class Rotary(nn.Module):
    """The angles by which `rotate` turns queries and keys of `width` numbers."""

    def __init__(self, rows: int, width: int, base: float) -> None:
        super().__init__()
        self.table = Sinusoid(rows, width, base)

    def forward(self, queries: int, start: int) -> Relative:
        return Relative(angles=self.table(queries, start))
