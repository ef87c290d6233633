"""The Transformer: two stacks of attention and feed-forward layers. Vaswani et al. 2017, and its variants.

Which kernel, norm, order, activation and positions it has is decided by the parts it is given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.attention import CrossAttention, SelfAttention
from regard.layers.cache import Cache, KeyValues
from regard.layers.relations import Relation, Relative
from regard.layers.residual import Around
from regard.layers.sublayers import Layer, Reading, pass_through
from regard.models.interface import Memory, OutputLayer, no_summary


class Entrance(nn.Module):
    """Tokens to the first vectors: embedding, position, dropout."""

    def __init__(self, embedding: nn.Module, positions: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.embedding, self.positions, self.dropout = embedding, positions, dropout

    def forward(self, tokens: Int[Tensor, "n t"], start: int) -> Float[Tensor, "n t d"]:
        x: Tensor = self.dropout(self.positions(self.embedding(tokens), start))
        return x


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with its norm and residual around it."""

    def __init__(
        self, attention: SelfAttention, feedforward: nn.Module, around_attention: Around, around_feedforward: Around
    ) -> None:
        super().__init__()
        self.attention, self.feedforward = attention, feedforward
        self.around_attention, self.around_feedforward = around_attention, around_feedforward

    def forward(
        self, x: Float[Tensor, "n s d"], mask: Bool[Tensor, "n s"] | None, relative: Relative
    ) -> Float[Tensor, "n s d"]:
        return self.step(x, self.attention.begin(x), mask, relative)[0]

    def step(
        self, x: Float[Tensor, "n t d"], past: Cache, mask: Bool[Tensor, "n k"] | None, relative: Relative
    ) -> tuple[Float[Tensor, "n t d"], Cache]:
        """The same for positions that follow a past; the second result is the past of the next call."""
        x, (seen,) = through([self], x, [past], mask, relative)
        return x, seen

    @property
    def parts(self) -> Layer:
        return (self.around_attention, self.attention), (), (self.around_feedforward, self.feedforward)


def through(
    layers: Iterable[EncoderLayer],
    x: Float[Tensor, "n t d"],
    pasts: Sequence[Cache],
    mask: Bool[Tensor, "n k"] | None,
    relative: Relative,
) -> tuple[Float[Tensor, "n t d"], tuple[Cache, ...]]:
    """`step` of one layer after the other, with the past of each."""
    return pass_through(x, [layer.parts for layer in layers], pasts, mask, relative)


class TransformerEncoder(nn.Module):
    """Every source position after attending to all others; `norm` is the identity when layers end with their own."""

    def __init__(self, entrance: Entrance, relation: Relation, layers: Sequence[EncoderLayer], norm: nn.Module) -> None:
        super().__init__()
        self.entrance, self.relation, self.layers, self.norm = entrance, relation, nn.ModuleList(layers), norm

    def forward(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        relative = self.relation(tokens.shape[1], 0)
        x, layers = self.entrance(tokens, 0), list(cast(Iterable[EncoderLayer], self.layers))
        x, _ = through(layers, x, [layer.attention.begin(x) for layer in layers], mask, relative)
        x = self.norm(x)
        return Memory(x, mask, no_summary(x))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the memory, feed-forward, each with its norm and residual around it."""

    def __init__(
        self, attention: SelfAttention, cross: CrossAttention, feedforward: nn.Module, around: Sequence[Around]
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feedforward = attention, cross, feedforward
        self.around_attention, self.around_cross, self.around_feedforward = around

    def begin(self, memory: Float[Tensor, "n s d"]) -> tuple[Cache, KeyValues]:
        """No past, and the memory as this layer sees it, computed once."""
        return self.attention.begin(memory), self.cross.remember(memory)

    def parts(self, memory: KeyValues, mask: Bool[Tensor, "m s"] | None) -> Layer:
        """n/m rows in a row read each row of the memory."""
        cross = Reading(self.around_cross, self.cross, memory, mask)
        return (self.around_attention, self.attention), (cross,), (self.around_feedforward, self.feedforward)


@dataclass(frozen=True)
class TransformerState:
    """Per layer, what self-attention has seen and what the memory looks like to cross-attention.

    `readers` rows in a row read each row of the memory: hypotheses of one sentence share what is known of it, and a
    search that reorders them moves their pasts alone. `mask` is none where all of the memory is real.
    """

    length: int
    past: tuple[Cache, ...]
    memory: tuple[KeyValues, ...]
    mask: Bool[Tensor, "m s"] | None
    readers: int

    def select(self, rows: Int[Tensor, " m"]) -> "TransformerState":
        past = tuple(cache.select(rows) for cache in self.past)
        sources, readers = together(rows // self.readers if self.readers > 1 else rows)
        if torch.equal(sources, torch.arange(len(self.memory[0].keys), device=rows.device)):
            return TransformerState(self.length, past, self.memory, self.mask, readers)
        memory = tuple(seen.select(sources) for seen in self.memory)
        mask = None if self.mask is None else self.mask[sources]
        return TransformerState(self.length, past, memory, mask, readers)


def together(sources: Int[Tensor, " n"]) -> tuple[Int[Tensor, " m"], int]:
    """Equal neighbours as one entry, and how many each stands for; as they are where these numbers differ."""
    distinct, counts = torch.unique_consecutive(sources, return_counts=True)
    readers = len(sources) // max(len(distinct), 1)
    return (distinct, readers) if readers > 1 and bool((counts == readers).all()) else (sources, 1)


class TransformerDecoder(nn.Module):
    """Every target position after attending to those before it and to the memory."""

    def __init__(
        self,
        entrance: Entrance,
        relation: Relation,
        layers: Sequence[DecoderLayer],
        norm: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.entrance, self.relation, self.layers, self.norm = entrance, relation, nn.ModuleList(layers), norm
        self.output = output

    def begin(self, memory: Memory) -> TransformerState:
        layers = cast(Iterable[DecoderLayer], self.layers)
        past, seen = zip(*(layer.begin(memory.values) for layer in layers), strict=True)
        return TransformerState(0, past, seen, None if bool(memory.mask.all()) else memory.mask, readers=1)

    def features(
        self, tokens: Int[Tensor, "n t"], state: TransformerState
    ) -> tuple[Float[Tensor, "n t d"], TransformerState]:
        relative = self.relation(tokens.shape[1], state.length)
        layers = zip(cast(Iterable[DecoderLayer], self.layers), state.memory, strict=True)
        parts = [layer.parts(memory, state.mask) for layer, memory in layers]
        x, pasts = pass_through(self.entrance(tokens, state.length), parts, state.past, None, relative)
        length = state.length + tokens.shape[1]
        return self.norm(x), TransformerState(length, pasts, state.memory, state.mask, state.readers)

    def forward(
        self, tokens: Int[Tensor, "n t"], state: TransformerState
    ) -> tuple[Float[Tensor, "n t vocab"], TransformerState]:
        features, state = self.features(tokens, state)
        return self.output(features), state
