"""Sub-layers with their norms and residuals: as their modules say, or the same in one function with its own gradients.

The one function is for training on a CPU, a thread for each share of a batch; `native/sublayer.py` holds it. All else,
and whatever somebody watches by a hook, goes through the modules.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.attention import SelfAttention
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


def pass_through(
    z: Float[Tensor, "n t d"],
    layers: Sequence[tuple[Looking, Feeding]],
    pasts: Sequence[Cache],
    mask: Bool[Tensor, "n k"] | None,
    relative: Relative,
) -> tuple[Float[Tensor, "n t d"], tuple[Cache, ...]]:
    """`look`, then `feed`, of each layer: at once where all of them allow it."""
    along = zip(layers, pasts, strict=True)
    if trains(z) and all(looks(z, first, past, relative) and feeds(second) for (first, second), past in along):
        chain = [one for first, second in layers for one in (looking(z, first, mask, relative), feeding(z, second))]
        z, *packed = sublayer.chain(z, chain)
        return z, tuple(remembered(each, first[1]) for each, (first, _) in zip(packed, layers, strict=True))
    seen = []
    for (first, second), past in zip(layers, pasts, strict=True):
        z, cache = look(z, first, past, mask, relative)
        z = feed(z, second)
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


def watched(*modules: nn.Module) -> bool:
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)


# ---------------------------------------------------------------- its parts
def feeding(z: Float[Tensor, "n t d"], layer: Feeding) -> Sublayer:
    around, network = layer
    assert isinstance(network, FeedForward)
    made = part(z, around, network.inner, network.outer, None)
    return replace(made, rectified=network.activation is F.relu)


def looking(
    z: Float[Tensor, "n t d"], layer: Looking, mask: Bool[Tensor, "n k"] | None, relative: Relative
) -> Sublayer:
    around, attention = layer
    assert isinstance(attention.kernel, Full)
    hidden = None if mask is None else mask.contiguous()
    heads = Heads(attention.heads, relative.angles, hidden, attention.kernel.causal)
    return part(z, around, attention.packed, attention.output, heads)


def part(
    z: Float[Tensor, "n t d"], around: Around, first: nn.Linear, second: nn.Linear, heads: Heads | None
) -> Sublayer:
    """Random bytes are drawn as `Dropout.onto` would draw them."""
    assert isinstance(around, PreNorm)
    assert isinstance(around.norm, LayerNorm)
    norm, dropout = around.norm, around.dropout
    weights = (norm.gain, norm.shift, first.weight, first.bias, second.weight, second.bias)
    if not dropout.active:
        return Sublayer(weights, norm.epsilon, None, 0, heads)
    random = random_bytes(z.detach(), dropout.generator)
    return Sublayer(weights, norm.epsilon, random, dropout.threshold, heads)


def remembered(packed: Float[Tensor, "n t qkv"], attention: SelfAttention) -> KeyValues:
    _, k, v = parts_of(packed.view(*packed.shape[:2], 3, attention.heads, -1))
    return KeyValues(k, v)
