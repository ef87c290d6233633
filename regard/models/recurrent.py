"""Recurrent encoder–decoders: the bottleneck, the decks' simple attention, what answers its complaints, deep ones."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.recurrent import FastForward, OneWay, Stack
from regard.layers.scores import Prepared, SourceAttention
from regard.models.interface import Memory, OutputLayer


class RecurrentEncoder(nn.Module):
    """values = y^e(1..s) of the top layer; summary = the last state of every layer and direction, lowest first."""

    def __init__(self, embedding: nn.Embedding, stack: Stack, dropout: nn.Module) -> None:
        super().__init__()
        self.embedding, self.stack, self.dropout = embedding, stack, dropout

    def forward(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        x = self.dropout(self.embedding(tokens))
        values, summary = self.stack(x, x.new_zeros(len(x), sum(self.stack.state_widths)), mask)
        return Memory(values, mask, summary)


class Joined(nn.Module):
    """[y^d(t); y^a(t)], as the decks hand it to W^o; nothing returns to the input."""

    feed = 0

    def __init__(self, attention: SourceAttention) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, y: Float[Tensor, "n t d"], source: Prepared) -> tuple[Float[Tensor, "n t f"], Prepared]:
        read, source = self.attention(y, source)
        return torch.cat([y, read], dim=-1), source


class Attentional(nn.Module):
    """tanh(W [y^d(t); y^a(t)]), of width `feed`, which joins the next input. Luong et al. 2015, eq. 5 and §3.3."""

    def __init__(self, attention: SourceAttention, joined: int, feed: int) -> None:
        super().__init__()
        self.attention, self.combine, self.feed = attention, nn.Linear(joined, feed), feed

    def forward(self, y: Float[Tensor, "n t d"], source: Prepared) -> tuple[Float[Tensor, "n t f"], Prepared]:
        read, source = self.attention(y, source)
        return self.combine(torch.cat([y, read], dim=-1)).tanh(), source


@dataclass(frozen=True)
class RecurrentState:
    """Every layer's state, the source as attention reads it, and the last features.

    `feed` has width 0 when the features do not return to the input.
    """

    cells: Float[Tensor, "n e"]
    source: Prepared
    feed: Float[Tensor, "n f"]

    def select(self, rows: Int[Tensor, " m"]) -> "RecurrentState":
        return RecurrentState(self.cells[rows], self.source.select(rows), self.feed[rows])


class RecurrentDecoder(nn.Module):
    """y(t) = softmax(W^o r(t)), r(t) = readout(y^d(t), source), y^d(t) = cell(y^d(t−1), y(t−1)).

    y^d(0) = bridge(summary), the identity where encoder and decoder have states of one shape.
    Attention looks from the new state, y^d(t), also for additive scores, where Bahdanau et al. look from y^d(t−1).
    A readout that feeds back makes the decoder go step by step; otherwise attention is computed for all t at once.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        bridge: nn.Module,
        stack: Stack,
        readout: Joined | Attentional,
        output: OutputLayer,
        dropout: nn.Module,
    ) -> None:
        super().__init__()
        self.embedding, self.bridge, self.stack = embedding, bridge, stack
        self.readout, self.output, self.dropout = readout, output, dropout

    def begin(self, memory: Memory) -> RecurrentState:
        source = self.readout.attention.prepare(memory.values, memory.mask)
        return RecurrentState(
            self.bridge(memory.summary), source, memory.summary.new_zeros(len(memory.summary), self.readout.feed)
        )

    def features(
        self, tokens: Int[Tensor, "n t"], state: RecurrentState
    ) -> tuple[Float[Tensor, "n t d"], RecurrentState]:
        x = self.dropout(self.embedding(tokens))
        if not self.readout.feed:
            return self.advance(x, state)
        features = []
        for step in x.split(1, dim=1):
            feature, state = self.advance(torch.cat([step, state.feed[:, None]], dim=-1), state)
            features.append(feature)
        return torch.cat(features, dim=1), state

    def advance(
        self, x: Float[Tensor, "n t i"], state: RecurrentState
    ) -> tuple[Float[Tensor, "n t d"], RecurrentState]:
        """The features of inputs that are known beforehand."""
        y, cells = self.stack(x, state.cells, None)
        read, source = self.readout(y, state.source)
        features = self.dropout(read)
        return features, RecurrentState(cells, source, features[:, -1, : self.readout.feed])

    def forward(
        self, tokens: Int[Tensor, "n t"], state: RecurrentState
    ) -> tuple[Float[Tensor, "n t vocab"], RecurrentState]:
        features, state = self.features(tokens, state)
        return self.output(features), state


class DeepDecoder(nn.Module):
    """softmax(W^o x^L(t)), x^l(t) = layer^l([x^{l−1}(t); a(t)]), x⁰(t) = y(t−1), a(t) = attention(h¹(t−1)).

    Only the lowest layer waits for what was read: with a(1..t) known, each layer above runs over all t at once. Whether
    these read a(t) too is for `stack` to say: they do in Wu et al. 2016, §3, and do not in Zhou et al. 2016.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        bridge: nn.Module,
        first: OneWay | FastForward,
        stack: Stack,
        attention: SourceAttention,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.embedding, self.bridge, self.first, self.stack = embedding, bridge, first, stack
        self.attention, self.output, self.dropout = attention, output, stack.dropout

    def begin(self, memory: Memory) -> RecurrentState:
        source = self.attention.prepare(memory.values, memory.mask)
        return RecurrentState(self.bridge(memory.summary), source, memory.summary[:, :0])

    def features(
        self, tokens: Int[Tensor, "n t"], state: RecurrentState
    ) -> tuple[Float[Tensor, "n t d"], RecurrentState]:
        low, high = torch.split(state.cells, [self.first.state_width, sum(self.stack.state_widths)], -1)
        source, outputs, reads = state.source, [], []
        for step in self.dropout(self.embedding(tokens)).split(1, dim=1):
            read, source = self.attention(low[:, None, : self.first.cell.width], source)
            y, low = self.first(torch.cat([step, read], -1), low, None)
            outputs.append(y)
            reads.append(read)
        y, high = self.stack(self.dropout(torch.cat(outputs, 1)), high, None, torch.cat(reads, 1))
        return self.dropout(y), RecurrentState(torch.cat([low, high], -1), source, state.feed)

    def forward(
        self, tokens: Int[Tensor, "n t"], state: RecurrentState
    ) -> tuple[Float[Tensor, "n t vocab"], RecurrentState]:
        features, state = self.features(tokens, state)
        return self.output(features), state
