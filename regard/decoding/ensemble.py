"""Several models that speak as one: at every step the mean of their probabilities.

An ensemble is an encoder and a decoder like any other, so that a search never knows that it has one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.best import log_softmax_
from regard.errors import DecodingError
from regard.models.interface import Decoder, Memory, OutputLayer, SequenceToSequence, State
from regard.text.special import EOS


def log_mean(log_probs: Float[Tensor, "members *rows vocab"]) -> Float[Tensor, "*rows vocab"]:
    """log (1/m Σ p): what all members together expect."""
    return log_probs.logsumexp(0) - math.log(len(log_probs))


def together(members: Sequence[SequenceToSequence]) -> SequenceToSequence:
    """A model whose distributions are the means of its members'; one member is itself.

    All members read and write the same ids. The ensemble is for searching, drawing and scoring, not for training.
    """
    if len(members) == 1:
        return members[0]
    decoders = [member.decoder for member in members]
    return SequenceToSequence(EnsembleEncoder(members), EnsembleDecoder(decoders, [sizes(m) for m in members]))


@dataclass(frozen=True)
class Sizes:
    """Of what one member's decoder reads (a memory's values and summary) and of what its output layer reads."""

    values: int
    summary: int
    features: int


@torch.no_grad()
def sizes(member: SequenceToSequence) -> Sizes:
    """Asked of the member itself, by one token: no protocol names them."""
    token = torch.full((1, 1), EOS)
    memory = member.encode(token, torch.ones_like(token, dtype=torch.bool))
    features, _ = member.decoder.features(token, member.decoder.begin(memory))
    return Sizes(memory.values.shape[-1], memory.summary.shape[-1], features.shape[-1])


def side_by_side(memories: Sequence[Memory]) -> Memory:
    """One memory that holds them all: of each its values and, as one value more, its mask; see `apart`.

    Families may remember other numbers of positions for the same source; the shorter ones are filled up unseen.
    """
    longest = max(memory.mask.shape[1] for memory in memories)
    filled = [F.pad(as_values(memory), (0, 0, 0, longest - memory.mask.shape[1])) for memory in memories]
    seen = torch.stack([values[..., -1] > 0 for values in filled]).any(0)
    return Memory(torch.cat(filled, -1), seen, torch.cat([memory.summary for memory in memories], -1))


def as_values(memory: Memory) -> Float[Tensor, "n s e"]:
    return torch.cat([memory.values, memory.mask[..., None].to(memory.values)], -1)


def apart(memory: Memory, sizes: Sequence[Sizes]) -> Iterator[Memory]:
    """The memories that stand side by side in this one."""
    values = torch.split(memory.values, [size.values + 1 for size in sizes], -1)
    summaries = torch.split(memory.summary, [size.summary for size in sizes], -1)
    for value, summary in zip(values, summaries, strict=True):
        yield Memory(value[..., :-1].contiguous(), value[..., -1] > 0, summary.contiguous())


class EnsembleEncoder:
    """The members' memories side by side."""

    def __init__(self, members: Sequence[SequenceToSequence]) -> None:
        self.members = members

    def __call__(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        return side_by_side([member.encode(tokens, mask) for member in self.members])


@dataclass(frozen=True)
class EnsembleState:
    """What each member remembers."""

    members: tuple[State, ...]

    def select(self, rows: Int[Tensor, " m"]) -> "EnsembleState":
        return EnsembleState(tuple(state.select(rows) for state in self.members))


class EnsembleDecoder:
    """The members' decoders side by side; their features are one row, which the output layer takes apart."""

    def __init__(self, members: Sequence[Decoder[Any]], sizes: Sequence[Sizes]) -> None:
        self.members, self.sizes = members, sizes
        self.output: OutputLayer = EnsembleOutput([m.output for m in members], [size.features for size in sizes])

    def begin(self, memory: Memory) -> EnsembleState:
        parts = zip(self.members, apart(memory, self.sizes), strict=True)
        return EnsembleState(tuple(decoder.begin(part) for decoder, part in parts))

    def features(
        self, tokens: Int[Tensor, "n t"], state: EnsembleState
    ) -> tuple[Float[Tensor, "n t d"], EnsembleState]:
        found = [decoder.features(tokens, past) for decoder, past in zip(self.members, state.members, strict=True)]
        states = EnsembleState(tuple(after for _, after in found))
        return torch.cat([features for features, _ in found], -1), states

    def __call__(
        self, tokens: Int[Tensor, "n t"], state: EnsembleState
    ) -> tuple[Float[Tensor, "n t vocab"], EnsembleState]:
        features, state = self.features(tokens, state)
        return self.output(features), state


class EnsembleOutput:
    """log of the mean of the members' probabilities. As logits these stand for themselves: their softmax is the mean.

    There is no one weight behind them, so what reads weights (a shortlist, a loss) is refused.
    """

    def __init__(self, members: Sequence[OutputLayer], widths: Sequence[int]) -> None:
        self.members, self.widths = members, list(widths)

    @property
    def weight(self) -> Float[Tensor, "vocab d"]:
        raise DecodingError("an ensemble has no output layer of its own; use its members, or go without a shortlist")

    @property
    def bias(self) -> Float[Tensor, " vocab"] | None:
        return None

    def __call__(self, features: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows vocab"]:
        rows = torch.split(features.reshape(-1, features.shape[-1]), self.widths, -1)
        each = [log_softmax_(output(part)) for output, part in zip(self.members, rows, strict=True)]
        return log_mean(torch.stack(each)).reshape(*features.shape[:-1], -1)
