"""ByteNet: two stacks of dilated convolutions, one upon the other, and no attention. Kalchbrenner et al. 2016."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.convolution import DilatedBlock
from regard.layers.masks import padding
from regard.models.interface import Memory, OutputLayer, no_summary


def fitted(x: Float[Tensor, "n s d"], length: int) -> Float[Tensor, "n t d"]:
    """The first `length` positions of x, zeros where x has no more."""
    return F.pad(x, (0, 0, 0, length - x.shape[1]))


class ByteNetEncoder(nn.Module):
    """A memory of ⌈a·s⌉ columns for a source of s words: the blocks see s vectors, then zeros, in either direction.

    Column t is for the decoder's step t alone, so there are as many as a long translation has words. a = `stretch`.
    """

    def __init__(
        self,
        embedding: nn.Module,
        blocks: Sequence[DilatedBlock],
        norm: nn.Module,
        dropout: nn.Module,
        stretch: float,
    ) -> None:
        super().__init__()
        self.embedding, self.blocks, self.norm = embedding, nn.ModuleList(blocks), norm
        self.dropout, self.stretch = dropout, stretch

    def forward(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        columns = (mask.sum(1).double() * self.stretch).ceil().long()
        stretched = padding(columns, int(columns.max()))
        x = fitted(self.dropout(self.embedding(tokens)) * mask[..., None], stretched.shape[1])
        for block in self.blocks:
            x = block(x, stretched)
        x = self.norm(x)
        return Memory(x, stretched, no_summary(x))


@dataclass(frozen=True)
class ByteNetState:
    """How many steps were taken, the memory with zeros where it is hidden, and what each block last looked at."""

    length: int
    source: Float[Tensor, "n s d"]
    past: tuple[Float[Tensor, "n _ e"], ...]

    def select(self, rows: Int[Tensor, " m"]) -> "ByteNetState":
        return ByteNetState(self.length, self.source[rows], tuple(seen[rows] for seen in self.past))


class ByteNetDecoder(nn.Module):
    """Blocks that look back only, over E y(t−1) + memory(t): the decoder stands on the encoder, column upon column.

    It unfolds until it says that it is at the end; where the memory has no column left, it reads zeros.
    """

    def __init__(
        self,
        embedding: nn.Module,
        blocks: Sequence[DilatedBlock],
        norm: nn.Module,
        dropout: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.embedding, self.blocks, self.norm = embedding, nn.ModuleList(blocks), norm
        self.dropout, self.output = dropout, output

    def begin(self, memory: Memory) -> ByteNetState:
        source = memory.values.masked_fill(~memory.mask[..., None], 0.0)
        blocks = cast(Iterable[DilatedBlock], self.blocks)
        return ByteNetState(0, source, tuple(block.convolution.nothing(source) for block in blocks))

    def features(self, tokens: Int[Tensor, "n t"], state: ByteNetState) -> tuple[Float[Tensor, "n t d"], ByteNetState]:
        length = state.length + tokens.shape[1]
        x, seen = self.dropout(self.embedding(tokens)), []
        x = x + fitted(state.source[:, state.length : length], tokens.shape[1])
        for block, past in zip(cast(Iterable[DilatedBlock], self.blocks), state.past, strict=True):
            x, past = block.go_on(x, past)
            seen.append(past)
        return self.norm(x), ByteNetState(length, state.source, tuple(seen))

    def forward(
        self, tokens: Int[Tensor, "n t"], state: ByteNetState
    ) -> tuple[Float[Tensor, "n t vocab"], ByteNetState]:
        features, state = self.features(tokens, state)
        return self.output(features), state
