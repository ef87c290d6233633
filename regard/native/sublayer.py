"""Pre-norm sub-layers as one function each, with gradients: z + dropout(f(LN(z))), one call of sublayer.c each way.

Between its products torch would make a pass and a node of its graph for each norm, bias, activation and sum, and Python
a call: in a small model these take longer than the products, and threads that train side by side wait for each other at
every one. The layers are the reference, and a test holds each pair equal.
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float32, UInt8
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.native.attention import NARROW, PAYS, check
from regard.native.library import NUMBER, POINTER, REAL, library
from regard.native.training import VALUES


def torch_sgemm() -> int | None:
    """Where torch's own matrix product begins, if its library shows it: C then calls the same code as torch.mm."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if not path.exists():
        return None
    function = getattr(ctypes.CDLL(str(path)), "sgemm_", None)
    return ctypes.cast(function, ctypes.c_void_p).value if function else None


SGEMM = torch_sgemm()
SUITS = PAYS and SGEMM is not None

if library:
    library.feed_forwards.argtypes = [*[POINTER] * 9, *[NUMBER] * 3]
    library.feed_backwards.argtypes = [*[POINTER] * 11, *[NUMBER] * 3]
    library.look_forwards.argtypes = [POINTER] * 10
    library.look_backwards.argtypes = [POINTER] * 13
    library.feed_forwards.restype = library.feed_backwards.restype = None


class Surroundings(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in ("gain", "shift", "bytes")),
        ("epsilon", REAL),
        ("scale", REAL),
        ("threshold", ctypes.c_int32),
    ]


class Network(ctypes.Structure):
    _fields_ = [(name, POINTER) for name in ("w1", "b1", "w2", "b2")]


class Attending(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in ("w", "b", "wo", "bo", "angles", "mask")),
        *((name, NUMBER) for name in ("sentences", "places", "width", "heads", "head_width", "causal")),
    ]


@dataclass(frozen=True)
class Around:
    """What surrounds f: ε of the norm, and dropout as random bytes with the least one that is kept, if any."""

    epsilon: float
    random: UInt8[Tensor, "*shape"] | None
    threshold: int

    def native(self, gain: Float32[Tensor, " d"], shift: Float32[Tensor, " d"]) -> Surroundings:
        scale = VALUES / (VALUES - self.threshold)
        return Surroundings(*pointers(gain, shift, self.random), self.epsilon, scale, self.threshold)


@dataclass(frozen=True)
class Heads:
    """How f attends: the number of heads, the angles that turn queries and keys, the hidden keys, the future."""

    number: int
    angles: Float32[Tensor, "t e"] | None
    mask: Bool[Tensor, "n t"] | None
    causal: bool

    def native(self, z: Float32[Tensor, "n t d"], weights: tuple[Tensor | None, ...]) -> Attending:
        n, t, d = z.shape
        assert weights[2] is not None
        sizes = (n, t, d, self.number, weights[2].shape[1] // self.number, self.causal)
        return Attending(*pointers(*weights, self.angles, self.mask), *sizes)


def pointers(*tensors: Tensor | None) -> list[int | None]:
    return [None if x is None else x.data_ptr() for x in tensors]


def gradients(z: Tensor, weights: tuple[Tensor | None, ...]) -> tuple[list[Tensor | None], ctypes.Array[Any]]:
    """Room for those of z and of all weights, and where it is."""
    room = [None if x is None else torch.empty_like(x) for x in (z, *weights)]
    return room, (POINTER * len(room))(*pointers(*room))


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
        z = z.contiguous()
        wide, width = w1.shape
        rows = z.numel() // width
        out, kept, normal = torch.empty_like(z), z.new_empty(rows, 2), torch.empty_like(z)
        inner, slope = z.new_empty(rows, wide), z.new_empty(rows, wide)
        places = pointers(out, kept, normal, inner, slope, z)
        outside, network = around.native(gain, shift), Network(*pointers(w1, b1, w2, b2))
        library.feed_forwards(SGEMM, *places, ctypes.addressof(outside), ctypes.addressof(network), rows, width, wide)
        ctx.save_for_backward(z, kept, normal, inner, slope, gain, shift, w1, b1, w2, b2)
        ctx.around = around
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Float32[Tensor, "*rows d"]) -> tuple[Tensor | None, ...]:
        assert library
        z, kept, normal, inner, slope, *weights = ctx.saved_tensors
        gain, shift, w1, b1, w2, b2 = weights
        g, (wide, width) = g.contiguous(), w1.shape
        rows = z.numel() // width
        found, into = gradients(z, tuple(weights))
        room = z.new_empty(rows * (2 * width + wide))
        places = pointers(room, g, z, kept, normal, inner, slope)
        outside, network = ctx.around.native(gain, shift), Network(*pointers(w1, b1, w2, b2))
        structures = ctypes.addressof(outside), ctypes.addressof(network)
        library.feed_backwards(SGEMM, ctypes.addressof(into), *places, *structures, rows, width, wide)
        return *found, None


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
        assert library
        z = z.contiguous()
        n, t, _ = z.shape
        out, kept, normal = torch.empty_like(z), z.new_empty(n * t, 2), torch.empty_like(z)
        packed, found = z.new_empty(n, t, len(w)), z.new_empty(n, t, wo.shape[1])
        pairs = z.new_empty(n, heads.number, t, t + -t % NARROW)
        places = pointers(out, kept, normal, packed, pairs, found, z)
        outside, attending = around.native(gain, shift), heads.native(z, (w, b, wo, bo))
        check(library.look_forwards(SGEMM, *places, ctypes.addressof(outside), ctypes.addressof(attending)))
        ctx.save_for_backward(z, kept, normal, packed, pairs, found, gain, shift, w, b, wo, bo)
        ctx.around, ctx.heads = around, heads
        ctx.set_materialize_grads(False)
        return out, packed

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, g: Float32[Tensor, "n t d"] | None, of_packed: Float32[Tensor, "n t qkv"] | None
    ) -> tuple[Tensor | None, ...]:
        assert library
        z, kept, normal, packed, pairs, attended, *weights = ctx.saved_tensors
        gain, shift, w, b, wo, bo = weights
        n, t, width = z.shape
        g = torch.zeros_like(z) if g is None else g.contiguous()
        of_packed = None if of_packed is None else of_packed.contiguous()
        found, into = gradients(z, tuple(weights))
        room = z.new_empty(n * t * (2 * width + 4 * wo.shape[1]))
        places = pointers(room, g, of_packed, z, kept, normal, packed, pairs, attended)
        outside, attending = ctx.around.native(gain, shift), ctx.heads.native(z, (w, b, wo, bo))
        structures = ctypes.addressof(outside), ctypes.addressof(attending)
        check(library.look_backwards(SGEMM, ctypes.addressof(into), *places, *structures))
        return *found, None, None
