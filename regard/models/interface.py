"""What a sequence-to-sequence model is: an encoder that fills a memory, a decoder that reads it.

Letters, here and everywhere: n rows, s source positions, t target positions, q/k query/key positions, h heads, d width.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class Memory:
    """What the encoder hands to the decoder: one vector per source position, and a summary of the whole.

    `summary` is the final encoder state of a recurrent encoder (the bottleneck of the lectures); an encoder without
    one gives zeros of width 0.
    """

    values: Float[Tensor, "n s d"]
    mask: Bool[Tensor, "n s"]
    summary: Float[Tensor, "n e"]

    def select(self, rows: Int[Tensor, " m"]) -> "Memory":
        return Memory(self.values[rows], self.mask[rows], self.summary[rows])


@runtime_checkable
class State(Protocol):
    """Everything a decoder remembers between calls; `select` repeats, reorders and drops rows."""

    def select(self, rows: Int[Tensor, " m"]) -> "State": ...


S = TypeVar("S", bound=State)  # what a decoder remembers


@runtime_checkable
class Encoder(Protocol):
    def __call__(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory: ...


@runtime_checkable
class OutputLayer(Protocol):
    """logits = W x + b. W and b are open to view, so that a loss need not form the logits of a whole batch."""

    @property
    def weight(self) -> Float[Tensor, "vocab d"]: ...
    @property
    def bias(self) -> Float[Tensor, " vocab"] | None: ...
    def __call__(self, features: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows vocab"]: ...


@runtime_checkable
class Decoder(Protocol[S]):
    """Law: decoding a+b at once equals decoding a, then b from the state that a left.

    Teacher forcing, prefill and single steps are this one method. `features` stops before the output layer, so that
    a loss can be computed in pieces and a search can ask for the last position only: logits = output(features).
    """

    output: OutputLayer

    def begin(self, memory: Memory) -> S: ...
    def features(self, tokens: Int[Tensor, "n t"], state: S) -> tuple[Float[Tensor, "n t d"], S]: ...
    def __call__(self, tokens: Int[Tensor, "n t"], state: S) -> tuple[Float[Tensor, "n t vocab"], S]: ...


class SequenceToSequence(nn.Module):
    """An encoder and a decoder that were built for each other."""

    encoder: Encoder
    decoder: Decoder[Any]

    def __init__(self, encoder: Encoder, decoder: Decoder[Any]) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        return self.encoder(tokens, mask)

    def forward(
        self, source: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"], target: Int[Tensor, "n t"]
    ) -> Float[Tensor, "n t vocab"]:
        """Teacher forcing: logits for every target position at once."""
        logits, _ = self.decoder(target, self.decoder.begin(self.encode(source, mask)))
        return logits


def parameters(model: nn.Module) -> int:
    """Number of trained values; a tied weight counts once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def no_summary(values: Float[Tensor, "n s d"]) -> Float[Tensor, "n 0"]:
    return torch.zeros(len(values), 0, dtype=values.dtype, device=values.device)


def nothing_read(rows: int) -> Memory:
    """The memory of a decoder that has no source."""
    return Memory(torch.zeros(rows, 0, 0), torch.zeros(rows, 0, dtype=torch.bool), torch.zeros(rows, 0))
