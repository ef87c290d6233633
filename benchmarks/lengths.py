"""The work whose cost by length is measured, and the memory that it takes."""

import gc
import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType

import torch
from torch import Tensor

from regard.models.interface import SequenceToSequence, State
from regard.recipe.build import build
from regard.recipe.models import TransformerOptions
from regard.training.memory import peak_memory

TRAINING, PREFILL, DECODING = "training", "prefill", "one decoded token"
PAGE = os.sysconf("SC_PAGE_SIZE")
STEPS = 10  # decoded in a row: as in real decoding, the cache of one is still warm at the next
VOCABULARY, SOURCE = 100, 8  # ids; tokens of the source that a decoder reads


@dataclass(frozen=True)
class Scope:
    """One pass has `tokens` tokens whatever their `length`, so that only what depends on the length changes."""

    width: int
    window: int
    lengths: tuple[int, ...]
    tokens: int
    rows: int  # decoded together
    repeats: int


FULL = Scope(64, 64, tuple(2**i for i in range(7, 14)), tokens=8192, rows=8, repeats=5)
QUICK = Scope(16, 4, (64, 128), tokens=512, rows=2, repeats=1)


def model_of(kernel: str, scope: Scope) -> SequenceToSequence:
    options = TransformerOptions(
        width=scope.width,
        heads=2,
        feedforward=2 * scope.width,
        encoder_layers=2,
        decoder_layers=2,
        attention=kernel,
        window=scope.window,
        max_length=2 * max(scope.lengths),
    )
    return build(options, VOCABULARY, VOCABULARY, shared=True, seed=1)


def ids(rows: int, length: int) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(length))


def train(model: SequenceToSequence, length: int, scope: Scope) -> None:
    """Forward and backward through the encoder's stack, as in a training step."""
    source = ids(scope.tokens // length, length)
    model.train()
    model.zero_grad()
    model.encode(source, torch.ones_like(source, dtype=torch.bool)).values.square().mean().backward()


@torch.inference_mode()
def prefill(model: SequenceToSequence, length: int, rows: int) -> State:
    """The decoder's state after `length` tokens, read in one pass."""
    model.eval()
    source = ids(rows, SOURCE)
    state = model.decoder.begin(model.encode(source, torch.ones_like(source, dtype=torch.bool)))
    found: State = model.decoder.features(ids(rows, length), state)[1]
    return found


@torch.inference_mode()
def step(model: SequenceToSequence, state: State, rows: int) -> State:
    found: State = model.decoder.features(ids(rows, 1), state)[1]
    return found


@torch.inference_mode()
def state_at(model: SequenceToSequence, length: int, rows: int) -> State:
    """A state that has grown by single tokens: what one large pass leaves behind is not what steps keep."""
    state = prefill(model, length - 1, 1).select(torch.zeros(rows, dtype=torch.long))
    return step(model, state, rows)


class Decoding:
    """`STEPS` more tokens at each call, one by one, from a cache that begins at `length`."""

    def __init__(self, model: SequenceToSequence, length: int, rows: int) -> None:
        self.model, self.rows, self.state = model, rows, state_at(model, length, rows)

    def __call__(self) -> None:
        for _ in range(STEPS):
            self.state = step(self.model, self.state, self.rows)


# ---------------------------------------------------------------- memory
def resident() -> int:
    """The bytes that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def extra_memory(work: str, kernel: str, length: int, scope: Scope) -> int:
    """Peak bytes of one pass beyond what the process held before it; right only in a process of its own."""
    model = model_of(kernel, scope)
    shortest = scope.lengths[0]
    act(
        work, model, shortest, replace(scope, tokens=shortest)
    )  # threads and libraries take their memory at the first pass
    before = resident()
    act(work, model, length, scope)
    return max(peak_memory() - before, PAGE)


def act(work: str, model: SequenceToSequence, length: int, scope: Scope) -> None:
    if work == TRAINING:
        train(model, length, scope)
    else:
        prefill(model, length, scope.tokens // length)


def state_memory(kernel: str, length: int, scope: Scope) -> float:
    """Bytes of one row's state after `length` tokens."""
    model = model_of(kernel, scope)
    return storage(state_at(model, length, scope.rows)) / scope.rows


def storage(root: object) -> int:
    """Bytes behind every tensor that can be reached from `root`, shared ones once."""
    found: dict[int, int] = {}
    seen, ahead = set(), [root]
    while ahead:
        here = ahead.pop()
        if id(here) in seen or isinstance(here, type | ModuleType | FunctionType):
            continue
        seen.add(id(here))
        if isinstance(here, Tensor):
            found[here.untyped_storage().data_ptr()] = here.untyped_storage().nbytes()
        else:
            ahead += gc.get_referents(here)
    return sum(found.values())
