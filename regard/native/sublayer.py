"""Pre-norm sub-layers as one function each, with gradients: z + dropout(f(LN(z))).

Between its products torch would make a pass and a node of its graph for each norm, bias, activation and sum, and Python
a call: in a small model these take longer than the products. The layers are the reference, and a test holds each pair
equal.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float32, UInt8
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.native import attention, training
from regard.native.library import NUMBER, POINTER, REAL, library
from regard.native.training import VALUES

if library:
    library.normalise.argtypes = [*[POINTER] * 5, NUMBER, NUMBER, REAL]
    library.normalise_back.argtypes = [*[POINTER] * 8, NUMBER, NUMBER]
    library.bend.argtypes = library.bend_back.argtypes = [*[POINTER] * 3, NUMBER, NUMBER]
    library.join.argtypes = [*[POINTER] * 4, NUMBER, NUMBER, ctypes.c_int32, REAL]
    library.sum_rows.argtypes = [POINTER, POINTER, NUMBER, NUMBER]
    for name in ("normalise", "normalise_back", "bend", "bend_back", "join", "sum_rows"):
        getattr(library, name).restype = None


@dataclass(frozen=True)
class Around:
    """What surrounds f: ε of the norm, and dropout as random bytes with the least one that is kept, if any."""

    epsilon: float
    random: UInt8[Tensor, "rows d"] | None
    threshold: int


@dataclass(frozen=True)
class Heads:
    """How f attends: the number of heads, the angles that turn queries and keys, the hidden keys, the future."""

    number: int
    angles: Float32[Tensor, "t e"] | None
    mask: Bool[Tensor, "n t"] | None
    causal: bool


def pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def normalise(
    x: Float32[Tensor, "rows d"], gain: Float32[Tensor, " d"], shift: Float32[Tensor, " d"], epsilon: float
) -> tuple[Float32[Tensor, "rows d"], Float32[Tensor, "rows 2"]]:
    """`layer_norm`, and the mean and 1/√(σ² + ε) of every row."""
    assert library
    out, kept = torch.empty_like(x), x.new_empty(len(x), 2)
    pointers = (tensor.data_ptr() for tensor in (out, kept, x, gain, shift))
    library.normalise(*pointers, *x.shape, epsilon)
    return out, kept


def normalise_back(
    past: Float32[Tensor, "rows d"],
    g: Float32[Tensor, "rows d"],
    x: Float32[Tensor, "rows d"],
    kept: Float32[Tensor, "rows 2"],
    gain: Float32[Tensor, " d"],
) -> tuple[Float32[Tensor, "rows d"], Float32[Tensor, " d"], Float32[Tensor, " d"]]:
    """The gradients of x, to which the one that came `past` the sub-layer is added, of the gain and of the shift."""
    assert library
    dx, dgain, dshift = torch.empty_like(x), torch.zeros_like(gain), torch.zeros_like(gain)
    pointers = (tensor.data_ptr() for tensor in (dx, dgain, dshift, past, g, x, kept, gain))
    library.normalise_back(*pointers, *x.shape)
    return dx, dgain, dshift


def join(
    y: Float32[Tensor, "rows d"], z: Float32[Tensor, "rows d"], bias: Float32[Tensor, " d"] | None, around: Around
) -> None:
    """y ← z + dropout(y + b)."""
    assert library
    scale = VALUES / (VALUES - around.threshold)
    places = y.data_ptr(), z.data_ptr(), pointer(bias), pointer(around.random)
    library.join(*places, *y.shape, around.threshold, scale)


def leave(g: Float32[Tensor, "rows d"], around: Around) -> Float32[Tensor, "rows d"]:
    """The gradient of what `join` dropped out of."""
    if around.random is None:
        return g
    assert training.kernels
    return training.kernels.drop(g, around.random, around.threshold)


def sum_rows(x: Float32[Tensor, "rows d"]) -> Float32[Tensor, " d"]:
    assert library
    sums = x.new_zeros(x.shape[1])
    library.sum_rows(sums.data_ptr(), x.data_ptr(), *x.shape)
    return sums


class GeluNetwork(torch.autograd.Function):
    """z + dropout(W₂ gelu(W₁ LN(z) + b₁) + b₂)."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Float32[Tensor, "*rows d"],
        gain: Float32[Tensor, " d"],
        shift: Float32[Tensor, " d"],
        w1: Float32[Tensor, "inner d"],
        b1: Float32[Tensor, " inner"] | None,
        w2: Float32[Tensor, "d inner"],
        b2: Float32[Tensor, " d"] | None,
        around: Around,
    ) -> Float32[Tensor, "*rows d"]:
        assert library
        rows = z.reshape(-1, z.shape[-1])
        normal, kept = normalise(rows, gain, shift, around.epsilon)
        inner = torch.mm(normal, w1.t())
        slope = torch.empty_like(inner)
        library.bend(inner.data_ptr(), slope.data_ptr(), pointer(b1), *inner.shape)
        y = torch.mm(inner, w2.t())
        join(y, rows, b2, around)
        ctx.save_for_backward(rows, kept, normal, inner, slope, gain, w1, w2)
        ctx.around, ctx.biases = around, (b1 is not None, b2 is not None)
        return y.view(z.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Float32[Tensor, "*rows d"]) -> tuple[Tensor | None, ...]:
        assert library
        rows, kept, normal, inner, slope, gain, w1, w2 = ctx.saved_tensors
        g = gradient.reshape(rows.shape).contiguous()
        after = leave(g, ctx.around)
        bent = torch.mm(after, w2)
        sums = bent.new_zeros(bent.shape[1])
        library.bend_back(bent.data_ptr(), sums.data_ptr(), slope.data_ptr(), *bent.shape)
        dz, dgain, dshift = normalise_back(g, torch.mm(bent, w1), rows, kept, gain)
        first, second = ctx.biases
        dw1, dw2 = torch.mm(bent.t(), normal), torch.mm(after.t(), inner)
        db1, db2 = sums if first else None, sum_rows(after) if second else None
        return dz.view(gradient.shape), dgain, dshift, dw1, db1, dw2, db2, None


class SelfAttending(torch.autograd.Function):
    """z + dropout(W^O attend(q, k, v) + b^O) with q, k, v side by side in W LN(z) + b, which is the second result."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Float32[Tensor, "n t d"],
        gain: Float32[Tensor, " d"],
        shift: Float32[Tensor, " d"],
        w: Float32[Tensor, "qkv d"],
        b: Float32[Tensor, " qkv"] | None,
        wo: Float32[Tensor, "d he"],
        bo: Float32[Tensor, " d"] | None,
        around: Around,
        heads: Heads,
    ) -> tuple[Float32[Tensor, "n t d"], Float32[Tensor, "n t qkv"]]:
        n, t, d = z.shape
        rows = z.reshape(n * t, d)
        normal, kept = normalise(rows, gain, shift, around.epsilon)
        packed = torch.mm(normal, w.t()) if b is None else torch.addmm(b, normal, w.t())
        packed = packed.view(n, t, -1)
        if heads.angles is not None:
            assert training.kernels
            training.kernels.turn(packed, packed, heads.angles, 2 * heads.number, 1.0)
        q, k, v = apart(packed, heads)
        found, weights = attention.forwards(q, k, v, heads.mask, heads.causal)
        found = found.view(n * t, -1)
        y = torch.mm(found, wo.t())
        join(y, rows, bo, around)
        ctx.save_for_backward(rows, kept, normal, packed, weights, found, gain, w, wo)
        ctx.around, ctx.heads, ctx.biases = around, heads, (b is not None, bo is not None)
        ctx.set_materialize_grads(False)
        return y.view(n, t, d), packed

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradient: Float32[Tensor, "n t d"] | None, of_packed: Float32[Tensor, "n t qkv"] | None
    ) -> tuple[Tensor | None, ...]:
        rows, kept, normal, packed, weights, found, gain, w, wo = ctx.saved_tensors
        n, t, _ = packed.shape
        g = torch.zeros_like(rows) if gradient is None else gradient.reshape(rows.shape).contiguous()
        after = leave(g, ctx.around)
        inner = torch.empty_like(packed)
        saved = *apart(packed, ctx.heads), weights
        came = torch.mm(after, wo).view(n, t, ctx.heads.number, -1).transpose(1, 2)
        attention.backwards(apart(inner, ctx.heads), came, saved, ctx.heads.causal)
        if of_packed is not None:
            inner += of_packed
        if ctx.heads.angles is not None:
            assert training.kernels
            training.kernels.turn(inner, inner, ctx.heads.angles, 2 * ctx.heads.number, -1.0)
        dpacked = inner.view(n * t, -1)
        dz, dgain, dshift = normalise_back(g, torch.mm(dpacked, w), rows, kept, gain)
        first, second = ctx.biases
        dw, dwo = torch.mm(dpacked.t(), normal), torch.mm(after.t(), found)
        db, dbo = sum_rows(dpacked) if first else None, sum_rows(after) if second else None
        return dz.view(n, t, -1), dgain, dshift, dw, db, dwo, dbo, None, None


def apart(packed: Float32[Tensor, "n t qkv"], heads: Heads) -> tuple[Tensor, ...]:
    n, t, _ = packed.shape
    return packed.view(n, t, 3, heads.number, -1).permute(2, 0, 3, 1, 4).unbind()
