"""Attention of a recurrent decoder over the encoder's states: scores, their softmax, and the weighted sum.

A score has two halves: what depends on the source alone is computed once per sentence (`prepare`), the rest at every
step. `forward` gives the attention vectors, `weights` the distributions behind them for the same inputs, as one head.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def dot_scores(q: Float[Tensor, "n q d"], k: Float[Tensor, "n k d"]) -> Float[Tensor, "n q k"]:
    """qᵀk, unscaled: a(t) = [y^e(1), …, y^e(T)]ᵀ y^d(t). Luong et al. 2015."""
    return q @ k.mT


def scaled_dot_scores(q: Float[Tensor, "n q d"], k: Float[Tensor, "n k d"]) -> Float[Tensor, "n q k"]:
    """qᵀk / √d. Vaswani et al. 2017."""
    return q @ k.mT / math.sqrt(q.shape[-1])


def general_scores(
    q: Float[Tensor, "n q d"], k: Float[Tensor, "n k e"], w: Float[Tensor, "d e"]
) -> Float[Tensor, "n q k"]:
    """qᵀ W k. Luong et al. 2015."""
    return dot_scores(q, k @ w.mT)


def additive_scores(
    wq: Float[Tensor, "n q a"], uk: Float[Tensor, "n k a"], v: Float[Tensor, " a"]
) -> Float[Tensor, "n q k"]:
    """vᵀ tanh(W q + U k), given W q and U k. Bahdanau et al. 2014, A.1.2."""
    return (wq[:, :, None] + uk[:, None]).tanh() @ v  # (n, q, k, a) → (n, q, k)


def distribute(scores: Float[Tensor, "n q k"], mask: Bool[Tensor, "n k"]) -> Float[Tensor, "n q k"]:
    """softmax(scores) over the visible keys; zeros where none is visible."""
    visible = mask[:, None]
    # The lowest number rather than −∞: a row that sees nothing has a softmax, which the mask then clears.
    return scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1) * visible


@dataclass(frozen=True)
class Prepared:
    """What attention needs of one batch of sources, computed once.

    `past` is the sum of all weights so far (coverage), of width 0 when attention does not remember.
    """

    keys: Float[Tensor, "n k a"]
    values: Float[Tensor, "n k e"]
    mask: Bool[Tensor, "n k"]
    past: Float[Tensor, "n c"]

    def select(self, rows: Tensor) -> "Prepared":
        return Prepared(self.keys[rows], self.values[rows], self.mask[rows], self.past[rows])


@runtime_checkable
class Score(Protocol):
    """`keys` is the half that is computed once; calling gives the scores of queries against such keys."""

    def keys(self, memory: Float[Tensor, "n k e"]) -> Float[Tensor, "n k a"]: ...
    def __call__(self, q: Float[Tensor, "n q d"], keys: Float[Tensor, "n k a"]) -> Float[Tensor, "n q k"]: ...


@runtime_checkable
class SourceAttention(Protocol):
    """How a decoder reads its source; the `Prepared` that comes back is the one for the next queries."""

    def prepare(self, memory: Float[Tensor, "n k e"], mask: Bool[Tensor, "n k"]) -> Prepared: ...
    def __call__(self, q: Float[Tensor, "n q d"], source: Prepared) -> tuple[Float[Tensor, "n q e"], Prepared]: ...


class Dot(nn.Module):
    """qᵀk: no weights, so that queries and memory have one width."""

    def keys(self, memory: Float[Tensor, "n k d"]) -> Float[Tensor, "n k d"]:
        return memory

    def forward(self, q: Float[Tensor, "n q d"], keys: Float[Tensor, "n k d"]) -> Float[Tensor, "n q k"]:
        return dot_scores(q, keys)


class ScaledDot(nn.Module):
    """qᵀk / √d: no weights either."""

    def keys(self, memory: Float[Tensor, "n k d"]) -> Float[Tensor, "n k d"]:
        return memory

    def forward(self, q: Float[Tensor, "n q d"], keys: Float[Tensor, "n k d"]) -> Float[Tensor, "n q k"]:
        return scaled_dot_scores(q, keys)


class General(nn.Module):
    """qᵀ W k: its keys are W k."""

    def __init__(self, queries: int, memory: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory, queries, bias=False)

    def keys(self, memory: Float[Tensor, "n k e"]) -> Float[Tensor, "n k d"]:
        wk: Tensor = self.key(memory)
        return wk

    def forward(self, q: Float[Tensor, "n q d"], keys: Float[Tensor, "n k d"]) -> Float[Tensor, "n q k"]:
        return dot_scores(q, keys)


class Additive(nn.Module):
    """vᵀ tanh(W q + U k): its keys are U k."""

    def __init__(self, queries: int, memory: int, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(queries, width), nn.Linear(memory, width, bias=False)
        self.v = nn.Parameter(torch.empty(width).uniform_(-1, 1) / math.sqrt(width))

    def keys(self, memory: Float[Tensor, "n k e"]) -> Float[Tensor, "n k a"]:
        uk: Tensor = self.key(memory)
        return uk

    def forward(self, q: Float[Tensor, "n q d"], keys: Float[Tensor, "n k a"]) -> Float[Tensor, "n q k"]:
        return additive_scores(self.query(q), keys, self.v)


class Projected(nn.Module):
    """(W^k k)ᵀ (W^q q), unscaled: the scores of the decks' parameterised attention."""

    def __init__(self, queries: int, memory: int, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(queries, width, bias=False), nn.Linear(memory, width, bias=False)

    def keys(self, memory: Float[Tensor, "n k e"]) -> Float[Tensor, "n k a"]:
        wk: Tensor = self.key(memory)
        return wk

    def forward(self, q: Float[Tensor, "n q d"], keys: Float[Tensor, "n k a"]) -> Float[Tensor, "n q k"]:
        return dot_scores(self.query(q), keys)


class Attention(nn.Module):
    """y^a(t) = V softmax(score(y^d(t), K)): every query by itself, so any number of them at once.

    `value` is W^v for parameterised attention and the identity for the others.
    """

    def __init__(self, score: Score, value: nn.Module) -> None:
        super().__init__()
        self.score, self.value = score, value

    def prepare(self, memory: Float[Tensor, "n k e"], mask: Bool[Tensor, "n k"]) -> Prepared:
        return Prepared(self.score.keys(memory), self.value(memory), mask, memory.new_zeros(len(memory), 0))

    def weights(self, q: Float[Tensor, "n q d"], source: Prepared) -> Float[Tensor, "n 1 q k"]:
        return distribute(self.score(q, source.keys), source.mask)[:, None]

    def forward(self, q: Float[Tensor, "n q d"], source: Prepared) -> tuple[Float[Tensor, "n q e"], Prepared]:
        return self.weights(q, source)[:, 0] @ source.values, source


class CoveredAttention(nn.Module):
    """Additive attention that knows where it has looked: vᵀ tanh(W q + U k_i + c_i w), c_i the past weights on i.

    One query after another, because each adds its weights to the past of the next. c is a plain sum, as in
    See et al. 2017, eq. 10–11; Tu et al. 2016 divide it by a learnt fertility.
    """

    def __init__(self, score: Additive, width: int) -> None:
        super().__init__()
        self.score = score
        self.w = nn.Parameter(torch.empty(width).uniform_(-1, 1) / math.sqrt(width))

    def prepare(self, memory: Float[Tensor, "n k e"], mask: Bool[Tensor, "n k"]) -> Prepared:
        return Prepared(self.score.keys(memory), memory, mask, torch.zeros_like(memory[..., 0]))

    def weights(self, q: Float[Tensor, "n q d"], source: Prepared) -> Float[Tensor, "n 1 q k"]:
        rows, past = [], source.past
        for query in torch.split(q, 1, dim=1):
            rows.append(distribute(self.score(query, source.keys + past[..., None] * self.w), source.mask))
            past = past + rows[-1][:, 0]
        return torch.cat(rows, dim=1)[:, None]

    def forward(self, q: Float[Tensor, "n q d"], source: Prepared) -> tuple[Float[Tensor, "n q e"], Prepared]:
        weights = self.weights(q, source)[:, 0]
        return weights @ source.values, replace(source, past=source.past + weights.sum(1))


class Unattended(nn.Module):
    """No attention: the vector read is empty, and the decoder lives on the encoder's last state."""

    def prepare(self, memory: Float[Tensor, "n k e"], mask: Bool[Tensor, "n k"]) -> Prepared:
        return Prepared(memory[..., :0], memory[..., :0], mask, memory.new_zeros(len(memory), 0))

    def forward(self, q: Float[Tensor, "n q d"], source: Prepared) -> tuple[Float[Tensor, "n q 0"], Prepared]:
        return q[..., :0], source
