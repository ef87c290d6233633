"""The exact attention weights of a finished output, from any model, without slowing its decoding down."""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.explaining.explanation import Kind
from regard.models.interface import SequenceToSequence

Calls = dict[str, list[Tensor]]  # path of an attention module → its weights (1, h, q, k), one entry a call


@dataclass(frozen=True)
class Attention:
    """What one attention module looked at: `weights[head, query, key]`, each row of queries summing to 1.

    `kind` says who looks at whom: encoder → source at source, decoder → target at target, cross → target at source.
    """

    name: str
    kind: Kind
    layer: int
    weights: Float[Tensor, "h q k"]


@dataclass(frozen=True)
class Replay:
    """What a model gave for its inputs, and what each attention module looked at, in the order of the model."""

    output: Float[Tensor, "..."]
    attentions: tuple[Attention, ...]


@torch.no_grad()
def replay(model: nn.Module, *inputs: Tensor) -> Replay:
    """model(*inputs) in evaluation mode, with the weights of every attention module; `inputs` have one row.

    For any family: tokens, mask and segments of BERT, an image of ViT, source, mask and target of an encoder–decoder.
    Fast kernels compute the output, the reference equation the weights of each call. The model is left as it was found.
    """
    with evaluating(model), watch(model) as calls:
        output = model(*inputs)
    seen = {name: weights for name, weights in calls.items() if weights}
    return Replay(output, tuple(attention(name, kind, seen[name]) for name, kind in kinds(seen).items()))


def record(model: SequenceToSequence, source: Int[Tensor, "1 s"], target: Int[Tensor, "1 t"]) -> list[Attention]:
    """Every attention module's weights, in the order of the model, as if it had decoded `target` step by step.

    The whole target is replayed at once (teacher forcing), which gives the same weights as decoding did: no decoder
    sees the future. `target` is what the decoder reads: it begins with the start token, and query t of a decoder
    map is the step that writes target[t + 1]. A model without a source is given one of no tokens.
    """
    return list(replay(model, source, torch.ones_like(source, dtype=torch.bool), target).attentions)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within the block the model is in evaluation mode; then every module is again in the one it was found in."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


@contextmanager
def watch(model: nn.Module) -> Iterator[Calls]:
    """Within the block, the weights of every call of every attention module of the model.

    An attention module is one that offers `weights` with the inputs of its `forward`.
    """
    calls: Calls = {name: [] for name, module in model.named_modules() if callable(getattr(module, "weights", None))}
    handles = [model.get_submodule(name).register_forward_hook(note(calls[name]), with_kwargs=True) for name in calls]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def note(calls: list[Tensor]) -> Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]:
    """A forward hook that adds the weights of each call to the list."""

    def hook(module: Any, inputs: tuple[Any, ...], named: dict[str, Any], _output: Any) -> None:
        calls.append(module.weights(*inputs, **named))

    return hook


def attention(name: str, kind: Kind, calls: list[Float[Tensor, "1 h _ k"]]) -> Attention:
    """The calls of one module as one map: a recurrent decoder looks once a step, so its calls follow each other."""
    return Attention(name, kind, layer_of(name), torch.cat(calls, dim=2)[0])


def layer_of(name: str) -> int:
    """The number in a path, counted from 0; a path without one is that of a model with one layer."""
    number = re.search(r"(?<=\.)\d+(?=\.|$)", name)
    return int(number[0]) if number else 0


def kinds(names: Collection[str]) -> dict[str, Kind]:
    """Read from the paths: `cross`, and attention that has no kernel, is how a decoder reads its source."""
    return {name: kind_of(name.split(".")) for name in names}


def kind_of(path: list[str]) -> Kind:
    if path[0] == "encoder":
        return "encoder"
    return "decoder" if path[-1] == "kernel" and "cross" not in path else "cross"
