"""A sub-layer with its norm and its residual: as its modules say, or the same in one function with its own gradients.

The one function is for training on a CPU, a thread for each share of a batch; `native/sublayer.py` holds it. All else,
and whatever somebody watches by a hook, goes through the modules.
"""

from typing import Any

import torch
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


def feed(around: Around, network: nn.Module, z: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]:
    """around(z, network)."""
    if not (isinstance(network, FeedForward) and network.activation is gelu and in_one(around, z, network)):
        return around(z, network)
    assert isinstance(around, PreNorm)
    inner, outer, norm = network.inner, network.outer, around.norm
    weights = (norm.gain, norm.shift, inner.weight, inner.bias, outer.weight, outer.bias)
    found: Tensor = sublayer.GeluNetwork.apply(z, *weights, surroundings(around, z))  # type: ignore[no-untyped-call]
    return found


def look(
    around: Around,
    attention: SelfAttention,
    z: Float[Tensor, "n t d"],
    past: Cache,
    mask: Bool[Tensor, "n k"] | None,
    relative: Relative,
) -> tuple[Float[Tensor, "n t d"], Cache]:
    """z after attention to `past` and to itself, with what is around it; the second result is the next call's past."""
    if not (reads_itself(attention, z, past) and relative.bias is None and in_one(around, z, attention)):
        y, seen = attention(around.before(z), past, mask, relative)
        return around.after(z, y), seen
    assert isinstance(around, PreNorm)
    assert isinstance(attention.kernel, Full)
    packed, output, norm = attention.packed, attention.output, around.norm
    weights = (norm.gain, norm.shift, packed.weight, packed.bias, output.weight, output.bias)
    hidden = None if mask is None else mask.contiguous()
    heads = sublayer.Heads(attention.heads, relative.angles, hidden, attention.kernel.causal)
    found = sublayer.SelfAttending.apply(z, *weights, surroundings(around, z), heads)  # type: ignore[no-untyped-call]
    y, qkv = found
    _, k, v = parts_of(qkv.view(*z.shape[:2], 3, attention.heads, -1))
    return y, KeyValues(k, v)


def in_one(around: Around, z: Tensor, f: nn.Module) -> bool:
    """Whether the function can stand for around(z, f): a layer norm before it, gradients wanted, nobody watching."""
    return (
        sublayer.SUITS
        and isinstance(around, PreNorm)
        and isinstance(around.norm, LayerNorm)
        and z.requires_grad
        and z.dtype == torch.float32
        and z.device.type == "cpu"
        and torch.get_num_threads() == 1  # with more of them, torch shares out what C does on one
        and not watched(f, around, around.norm, around.dropout)
    )


def reads_itself(attention: SelfAttention, z: Float[Tensor, "n t d"], past: Cache) -> bool:
    """Whether compiled attention takes it: every key is in z, and there are not too many."""
    kernel: Any = attention.kernel
    return (
        isinstance(kernel, Full)
        and isinstance(past, KeyValues)
        and past.keys.shape[2] == 0
        and 0 < z.shape[1] <= LONGEST
        and not kernel.dropout.active
        and not watched(kernel)
    )


def watched(*modules: nn.Module) -> bool:
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)


def surroundings(around: PreNorm, z: Tensor) -> sublayer.Around:
    """Random bytes are drawn as `Dropout.onto` would draw them."""
    assert isinstance(around.norm, LayerNorm)
    dropout = around.dropout
    if not dropout.active:
        return sublayer.Around(around.norm.epsilon, None, 0)
    random = random_bytes(z.detach(), dropout.generator)
    return sublayer.Around(around.norm.epsilon, random, dropout.threshold)
