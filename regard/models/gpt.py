"""GPT: one stack of causal attention that predicts the next token. Radford et al. 2018, 2019.

Which kernel, norm, order, activation and positions it has is decided by the parts it is given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.cache import Cache
from regard.layers.relations import Relation
from regard.models.interface import Memory, OutputLayer, no_summary
from regard.models.transformer import EncoderLayer, Entrance, through


class Nothing(nn.Module):
    """An encoder that reads nothing: a memory with a row for each row of tokens, and no positions in it.

    SequenceToSequence(Nothing(), gpt) is searched, sampled and scored as a model with a source is.
    """

    def forward(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        values = torch.zeros(len(tokens), 0, 0, device=tokens.device)
        return Memory(values, mask[:, :0], no_summary(values))


@dataclass(frozen=True)
class GptState:
    """How many tokens were read, and what each layer has seen of them."""

    length: int
    past: tuple[Cache, ...]

    def select(self, rows: Int[Tensor, " m"]) -> "GptState":
        return GptState(self.length, tuple(cache.select(rows) for cache in self.past))


class Gpt(nn.Module):
    """Every position after attending to itself and to those before it: a decoder that reads no memory.

    The kernels of its layers are causal; `norm` is the identity when layers end with their own.
    """

    def __init__(
        self,
        entrance: Entrance,
        relation: Relation,
        layers: Sequence[EncoderLayer],
        norm: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.entrance, self.relation, self.layers, self.norm = entrance, relation, nn.ModuleList(layers), norm
        self.output = output

    def begin(self, memory: Memory) -> GptState:
        """Only the number of rows is taken from the memory."""
        nothing = self.output.weight.new_zeros(len(memory.mask), 0, 0)
        layers = cast(Iterable[EncoderLayer], self.layers)
        return GptState(0, tuple(layer.attention.begin(nothing) for layer in layers))

    def features(self, tokens: Int[Tensor, "n t"], state: GptState) -> tuple[Float[Tensor, "n t d"], GptState]:
        relative = self.relation(tokens.shape[1], state.length)
        layers = cast(Iterable[EncoderLayer], self.layers)
        x, past = through(layers, self.entrance(tokens, state.length), state.past, None, relative)
        return self.norm(x), GptState(state.length + tokens.shape[1], past)

    def forward(self, tokens: Int[Tensor, "n t"], state: GptState) -> tuple[Float[Tensor, "n t vocab"], GptState]:
        features, state = self.features(tokens, state)
        return self.output(features), state
