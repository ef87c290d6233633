"""Sub-layers with their norms and residuals: as their modules say, or the same in one function with its own gradients.

The one function is for training on a CPU, a thread for each share of a batch; `native/sublayer.py` holds it. All else,
and whatever somebody watches by a hook, goes through the modules.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.attention import CrossAttention, SelfAttention
from regard.layers.cache import Cache, KeyValues
from regard.layers.dropout import random_bytes
from regard.layers.feedforward import FeedForward, gelu
from regard.layers.kernels import Full
from regard.layers.norm import LayerNorm
from regard.layers.packed import parts_of
from regard.layers.relations import Relative
from regard.layers.residual import Around, PreNorm
from regard.native import sublayer
from regard.native.attention import LONGEST
from regard.native.sublayer import Heads, Sublayer

Looking = tuple[Around, SelfAttention]
Feeding = tuple[Around, nn.Module]


@dataclass(frozen=True)
class Reading:
    """Attention to m rows of a memory, with what is around it; `mask` says which of its places are real."""

    around: Around
    attention: CrossAttention
    memory: KeyValues
    mask: Bool[Tensor, "m s"] | None


Layer = tuple[Looking, tuple[Reading, ...], Feeding]  # in this order; an encoder reads nothing


def feed(z: Float[Tensor, "n t d"], layer: Feeding) -> Float[Tensor, "n t d"]:
    """around(z, network)."""
    around, network = layer
    if not (trains(z) and feeds(layer)):
        return around(z, network)
    return sublayer.chain(z, [feeding(z, layer)])[0]


def look(
    z: Float[Tensor, "n t d"], layer: Looking, past: Cache, mask: Bool[Tensor, "n k"] | None, relative: Relative
) -> tuple[Float[Tensor, "n t d"], Cache]:
    """z after attention to `past` and to itself, with what is around it; the second result is the next call's past."""
    around, attention = layer
    if not (trains(z) and looks(z, layer, past, relative)):
        y, seen = attention(around.before(z), past, mask, relative)
        return around.after(z, y), seen
    y, packed = sublayer.chain(z, [looking(z, layer, mask, relative)])
    return y, remembered(packed, attention)


def read(z: Float[Tensor, "n t d"], layer: Reading) -> Float[Tensor, "n t d"]:
    """z after attention to the memory.

    n/m rows in a row read each row of it: their queries are those of one longer row.
    """
    if trains(z) and reads(z, layer):
        return sublayer.chain(z, [reading(z, layer)])[0]
    queries = layer.around.before(z).reshape(len(layer.memory.keys), -1, z.shape[-1])
    return layer.around.after(z, layer.attention(queries, layer.memory, layer.mask).reshape(z.shape))


def pass_through(
    z: Float[Tensor, "n t d"],
    layers: Sequence[Layer],
    pasts: Sequence[Cache],
    mask: Bool[Tensor, "n k"] | None,
    relative: Relative,
) -> tuple[Float[Tensor, "n t d"], tuple[Cache, ...]]:
    """`look`, `read` and `feed` of each layer: at once where all of them allow it. `mask` is for looking."""
    if trains(z) and all(fits(z, layer, past, relative) for layer, past in zip(layers, pasts, strict=True)):
        z, *packed = sublayer.chain(z, [one for layer in layers for one in parts(z, layer, mask, relative)])
        return z, tuple(remembered(each, first[1]) for each, (first, *_) in zip(packed, layers, strict=True))
    seen = []
    for (first, second, third), past in zip(layers, pasts, strict=True):
        z, cache = look(z, first, past, mask, relative)
        for one in second:
            z = read(z, one)
        z = feed(z, third)
        seen.append(cache)
    return z, tuple(seen)


# ---------------------------------------------------------------- whether it can be one function
def trains(z: Float[Tensor, "n t d"]) -> bool:
    return (
        sublayer.SUITS
        and z.requires_grad
        and z.dtype == torch.float32
        and z.device.type == "cpu"
        and torch.get_num_threads() == 1  # with more of them, torch shares out what C does on one
        and z.numel() > 0
    )


def plain(around: Around, f: nn.Module) -> bool:
    """A layer norm before it, and nobody watching."""
    return (
        isinstance(around, PreNorm)
        and isinstance(around.norm, LayerNorm)
        and not watched(f, around, around.norm, around.dropout)
    )


def feeds(layer: Feeding) -> bool:
    around, network = layer
    return isinstance(network, FeedForward) and network.activation in (gelu, F.relu) and plain(around, network)


def looks(z: Float[Tensor, "n t d"], layer: Looking, past: Cache, relative: Relative) -> bool:
    """Compiled attention takes it: every key is in z, and there are not too many."""
    around, attention = layer
    kernel = attention.kernel
    return (
        isinstance(kernel, Full)
        and isinstance(past, KeyValues)
        and past.keys.shape[2] == 0
        and z.shape[1] <= LONGEST
        and relative.bias is None
        and not kernel.dropout.active
        and not watched(kernel)
        and plain(around, attention)
    )


def reads(z: Float[Tensor, "n t d"], layer: Reading) -> bool:
    """Compiled attention takes it: every row has a row of the memory, and that is not too long."""
    kernel, keys, values = layer.attention.kernel, layer.memory.keys, layer.memory.values
    return (
        isinstance(kernel, Full)
        and not kernel.causal
        and len(keys) == len(z)
        and 0 < keys.shape[2] <= LONGEST
        and keys.shape == values.shape
        and keys.stride() == values.stride()
        and keys.stride(3) == 1
        and keys.dtype == torch.float32
        and not kernel.dropout.active
        and not watched(kernel)
        and plain(layer.around, layer.attention)
    )


def fits(z: Float[Tensor, "n t d"], layer: Layer, past: Cache, relative: Relative) -> bool:
    first, second, third = layer
    return looks(z, first, past, relative) and all(reads(z, one) for one in second) and feeds(third)


def watched(*modules: nn.Module) -> bool:
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)


# ---------------------------------------------------------------- its parts
def feeding(z: Float[Tensor, "n t d"], layer: Feeding) -> Sublayer:
    around, network = layer
    assert isinstance(network, FeedForward)
    return part(z, around, network.inner, network.outer, None, rectified=network.activation is F.relu)


def looking(
    z: Float[Tensor, "n t d"], layer: Looking, mask: Bool[Tensor, "n k"] | None, relative: Relative
) -> Sublayer:
    around, attention = layer
    assert isinstance(attention.kernel, Full)
    hidden = None if mask is None else mask.contiguous()
    heads = Heads(attention.heads, relative.angles, hidden, attention.kernel.causal)
    return part(z, around, attention.packed, attention.output, heads)


def reading(z: Float[Tensor, "n t d"], layer: Reading) -> Sublayer:
    attention, memory = layer.attention, layer.memory
    hidden = None if layer.mask is None else layer.mask.contiguous()
    heads = Heads(attention.heads, None, hidden, False, (memory.keys, memory.values))
    return part(z, layer.around, attention.query, attention.output, heads)


def parts(
    z: Float[Tensor, "n t d"], layer: Layer, mask: Bool[Tensor, "n k"] | None, relative: Relative
) -> list[Sublayer]:
    first, second, third = layer
    return [looking(z, first, mask, relative), *(reading(z, one) for one in second), feeding(z, third)]


def part(
    z: Float[Tensor, "n t d"],
    around: Around,
    first: nn.Linear,
    second: nn.Linear,
    heads: Heads | None,
    *,
    rectified: bool = False,
) -> Sublayer:
    """Random bytes are drawn as `Dropout.onto` would draw them."""
    assert isinstance(around, PreNorm)
    assert isinstance(around.norm, LayerNorm)
    norm, dropout = around.norm, around.dropout
    weights = (norm.gain, norm.shift, first.weight, first.bias, second.weight, second.bias)
    if not dropout.active:
        return Sublayer(weights, norm.epsilon, None, 0, heads, rectified)
    random = random_bytes(z.detach(), dropout.generator)
    return Sublayer(weights, norm.epsilon, random, dropout.threshold, heads, rectified)


def remembered(packed: Float[Tensor, "n t qkv"], attention: SelfAttention) -> KeyValues:
    _, k, v = parts_of(packed.view(*packed.shape[:2], 3, attention.heads, -1))
    return KeyValues(k, v)
