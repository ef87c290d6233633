"""Attention in training by attention.c: faster than torch's kernel where sequences are short."""

import ctypes
from typing import Any

import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.errors import TrainingError
from regard.native.library import NUMBER, POINTER, library

if library:
    library.attend_forwards.argtypes = [*[POINTER] * 7, *[NUMBER] * 6]
    library.attend_backwards.argtypes = [*[POINTER] * 9, *[NUMBER] * 6]

NARROW = 16  # of attention.c: rows of weights are filled up with zeros to a multiple of it

PAYS = library is not None and bool(library.attention_pays())
LONGEST = 128  # keys up to which it is faster than torch's kernel


def suits(q: Float[Tensor, "n h t e"], k: Float[Tensor, "n h s e"], v: Float[Tensor, "n h s f"]) -> bool:
    """Whether `attention` can take them and is the faster one: in training, over short sequences."""
    return (
        PAYS
        and (q.requires_grad or k.requires_grad)
        and all(x.dtype == torch.float32 and x.device.type == "cpu" for x in (q, k, v))
        and 0 < k.shape[2] <= LONGEST
        and q.shape[3] == v.shape[3]
    )


def dense(x: Float32[Tensor, "n h t e"]) -> Float32[Tensor, "n h t e"]:
    """The same numbers, those of one vector without gaps."""
    return x if x.stride(3) == 1 else x.contiguous()


def layouts(*tensors: Float32[Tensor, "n h _ e"]) -> ctypes.Array[ctypes.c_int64]:
    """How far apart sentences, heads and places of each tensor lie."""
    strides = [stride for x in tensors for stride in x.stride()[:3]]
    return (NUMBER * len(strides))(*strides)


def side_by_side(k: Float32[Tensor, "n h s e"]) -> tuple[Float32[Tensor, "n h s e"], ...]:
    """Room for the gradients of keys like these and of their values, as packed projections are.

    `Unpack` in layers/packed.py then has nothing to copy.
    """
    n, h, s, e = k.shape
    return k.new_empty(n, s, 2, h, e).permute(2, 0, 3, 1, 4).unbind()


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Float32[Tensor, "n h t e"],
        k: Float32[Tensor, "n h s e"],
        v: Float32[Tensor, "n h s e"],
        mask: Bool[Tensor, "n s"] | None,
        causal: bool,
    ) -> Float32[Tensor, "n h t e"]:
        assert library
        (n, h, t, e), s = q.shape, k.shape[2]
        q, k, v = dense(q), dense(k), dense(v)
        mask = None if mask is None else mask.contiguous()
        out, weights = q.new_empty(n, t, h, e), q.new_empty(n, h, t, s + -s % NARROW)
        pointers = (x.data_ptr() for x in (out, weights, q, k, v))
        hidden = None if mask is None else mask.data_ptr()
        check(library.attend_forwards(*pointers, layouts(q, k, v), hidden, causal, n, h, t, s, e))
        ctx.save_for_backward(q, k, v, weights)
        ctx.causal = causal
        return out.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Float32[Tensor, "n h t e"]) -> tuple[Tensor, Tensor, Tensor, None, None]:
        assert library
        q, k, v, weights = ctx.saved_tensors
        (n, h, t, e), s = q.shape, k.shape[2]
        g = dense(g)
        # Side by side, as packed projections are: `Unpack` in layers/packed.py then has nothing to copy.
        if t == s:
            dq, dk, dv = q.new_empty(n, t, 3, h, e).permute(2, 0, 3, 1, 4).unbind()
        else:
            dq = q.new_empty(n, t, h, e).transpose(1, 2)
            dk, dv = side_by_side(k)
        pointers = (x.data_ptr() for x in (dq, dk, dv, g, weights, q, k, v))
        places = layouts(q, k, v, g, dq, dk, dv)
        check(library.attend_backwards(*pointers, places, ctx.causal, n, h, t, s, e))
        return dq, dk, dv, None, None


def check(done: int) -> None:
    if not done:
        raise TrainingError("attention: the system has no memory left; lower data.batch_tokens")


def attention(
    q: Float32[Tensor, "n h t e"],
    k: Float32[Tensor, "n h s e"],
    v: Float32[Tensor, "n h s e"],
    mask: Bool[Tensor, "n s"] | None,
    causal: bool,
) -> Float32[Tensor, "n h t e"]:
    """attend(q, k, v) over keys that are not masked and, if causal, not ahead, for tensors that `suits` accepts.

    Heads of one place lie side by side in memory: merging them is no copy.
    """
    out: Tensor = Attention.apply(q, k, v, mask, causal)  # type: ignore[no-untyped-call]
    return out
