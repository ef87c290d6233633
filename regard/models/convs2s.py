"""ConvS2S: gated convolutions, and attention in every layer of the decoder. Gehring et al. 2017.

Every sum of two terms is multiplied by √½, so that its variance is that of one term.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.convolution import GatedConvolution
from regard.layers.scores import Prepared, SourceAttention
from regard.models.interface import Memory, OutputLayer, no_summary
from regard.models.transformer import Entrance

HALF = math.sqrt(0.5)


class ConvS2SEncoder(nn.Module):
    """The memory is [z; e]: z = W₂ x of the last layer, by which a position is found, and e, its embedding.

    x ← (GLU(conv(x)) + x) √½ in each layer, from W₁ e on; e knows its position.
    """

    def __init__(
        self, entrance: Entrance, enter: nn.Module, layers: Sequence[GatedConvolution], leave: nn.Module
    ) -> None:
        super().__init__()
        self.entrance, self.enter, self.layers, self.leave = entrance, enter, nn.ModuleList(layers), leave

    def forward(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        e = self.entrance(tokens, 0)
        x = self.enter(e)
        for layer in self.layers:
            x = (layer(x, mask) + x) * HALF
        values = torch.cat([self.leave(x), e], -1)
        return Memory(values, mask, no_summary(values))


class ConvS2SLayer(nn.Module):
    """x ← (h + W c) √½ + x, times √½, with h = GLU(conv(x)) and c = attention((W_d h + g) √½).

    g is the embedding of the word that the position has just read: it tells the query what was last said.
    """

    def __init__(
        self, convolution: GatedConvolution, query: nn.Module, cross: SourceAttention, read: nn.Module
    ) -> None:
        super().__init__()
        self.convolution, self.query, self.cross, self.read = convolution, query, cross, read

    def forward(
        self, x: Float[Tensor, "n t d"], g: Float[Tensor, "n t d"], source: Prepared, past: Float[Tensor, "n r d"]
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n r d"]]:
        h, past = self.convolution.go_on(x, past)
        c, _ = self.cross((self.query(h) + g) * HALF, source)
        return ((h + self.read(c)) * HALF + x) * HALF, past


@dataclass(frozen=True)
class ConvS2SState:
    """How many steps were taken, the source as all layers read it, and what each layer last looked at."""

    length: int
    source: Prepared
    past: tuple[Float[Tensor, "n _ d"], ...]

    def select(self, rows: Int[Tensor, " m"]) -> "ConvS2SState":
        return ConvS2SState(self.length, self.source.select(rows), tuple(seen[rows] for seen in self.past))


def readable(memory: Memory) -> Prepared:
    """Keys z and values (z + e) √½ · √m for a source of m words.

    The factor √m takes back what a mean of m values loses in variance, as if all weights were 1/m. §3.4 there.
    """
    z, e = memory.values.chunk(2, -1)
    words = memory.mask.sum(1)[:, None, None].to(z.dtype)
    return Prepared(z, (z + e) * HALF * words.sqrt(), memory.mask, z.new_zeros(len(z), 0))


class ConvS2SDecoder(nn.Module):
    """Layers that look back only, each reading the source, between W₁ g at the bottom and W₂ x at the top."""

    def __init__(
        self,
        entrance: Entrance,
        enter: nn.Module,
        layers: Sequence[ConvS2SLayer],
        leave: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.entrance, self.enter, self.layers, self.leave = entrance, enter, nn.ModuleList(layers), leave
        self.output = output

    def begin(self, memory: Memory) -> ConvS2SState:
        source, layers = readable(memory), cast(Iterable[ConvS2SLayer], self.layers)
        past = tuple(layer.convolution.convolution.nothing(source.keys) for layer in layers)
        return ConvS2SState(0, source, past)

    def features(self, tokens: Int[Tensor, "n t"], state: ConvS2SState) -> tuple[Float[Tensor, "n t d"], ConvS2SState]:
        g = self.entrance(tokens, state.length)
        x, seen = self.enter(g), []
        for layer, past in zip(self.layers, state.past, strict=True):
            x, past = layer(x, g, state.source, past)
            seen.append(past)
        return self.leave(x), ConvS2SState(state.length + tokens.shape[1], state.source, tuple(seen))

    def forward(
        self, tokens: Int[Tensor, "n t"], state: ConvS2SState
    ) -> tuple[Float[Tensor, "n t vocab"], ConvS2SState]:
        features, state = self.features(tokens, state)
        return self.output(features), state
