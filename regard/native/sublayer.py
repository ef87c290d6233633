"""Pre-norm sub-layers after one another as one function, with gradients: one call of sublayer.c each way.

Between its products torch would make a pass and a node of its graph for each norm, bias, activation and sum, and Python
a call: in a small model these take longer than the products, and threads that train side by side wait for each other at
every one. The layers are the reference, and a test holds the two equal.
"""

import ctypes
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float32, UInt8
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.native.attention import NARROW, PAYS, check, layouts, side_by_side
from regard.native.library import NUMBER, POINTER, REAL, library
from regard.native.products import of_torch, sgemm
from regard.native.training import VALUES

WEIGHTS = 6  # of a sub-layer: gain and shift of its norm, two matrices, each with its bias


SUITS = PAYS and of_torch() is not None

if library:
    library.chain_forwards.argtypes = [*[POINTER] * 3, NUMBER]
    library.chain_backwards.argtypes = [*[POINTER] * 6, NUMBER]


Room = Sequence[int]  # places of a sub-layer's memories, and where they end


class Native(ctypes.Structure):
    """`sublayer` of sublayer.c."""

    _fields_ = [
        *((name, POINTER) for name in ("gain", "shift", "w1", "b1", "w2", "b2", "bytes", "mask", "angles")),
        ("epsilon", REAL),
        ("scale", REAL),
        *((name, NUMBER) for name in ("threshold", "rows", "width", "wide", "middle")),
        *((name, NUMBER) for name in ("heads", "head_width", "sentences", "causal", "rectified")),
        *((name, POINTER) for name in ("out", "kept", "normal", "inner", "more", "found")),
        ("into", POINTER * 7),
        *((name, POINTER) for name in ("past_inner", "keys", "values")),
        ("seen", NUMBER * 3),
        ("count", NUMBER),
        *((name, POINTER) for name in ("into_keys", "into_values")),
        ("into_seen", NUMBER * 3),
    ]


class Heads(NamedTuple):
    """How a sub-layer attends: the number of heads, the angles that turn queries and keys, hidden keys, the future.

    `seen` are keys and values of something else, of the same strides; none: its own.
    """

    number: int
    angles: Float32[Tensor, "t e"] | None
    mask: Bool[Tensor, "n k"] | None
    causal: bool
    seen: tuple[Float32[Tensor, "n h k e"], Float32[Tensor, "n h k e"]] | None = None


class Sublayer(NamedTuple):  # made anew at every step: a dataclass takes several times as long
    """z + dropout(W₂ m(W₁ LN(z) + b₁) + b₂), where m is attention by heads, or where there are none GELU or ReLU.

    Queries, keys and values stand side by side in W₁ LN(z) + b₁, or queries alone where keys are seen. Dropout is
    random bytes with the least one that is kept, or none.
    """

    weights: tuple[Tensor | None, ...]
    epsilon: float
    random: UInt8[Tensor, "*shape"] | None
    threshold: int
    heads: Heads | None
    rectified: bool = False

    @property
    def wide(self) -> int:
        """Numbers of W₁ x."""
        assert self.weights[2] is not None
        return len(self.weights[2])

    @property
    def middle(self) -> int:
        """Numbers that W₂ reads."""
        return self.wide // 3 if self.looks_at_itself else self.wide

    @property
    def looks_at_itself(self) -> bool:
        return self.heads is not None and self.heads.seen is None

    @property
    def seen(self) -> tuple[Float32[Tensor, "n h k e"], ...]:
        return self.heads.seen or () if self.heads else ()

    def native(
        self, z: Float32[Tensor, "n t d"], out: Float32[Tensor, "n t d"], inner: Float32[Tensor, "n t wide"], room: Room
    ) -> Native:
        """With what else it remembers in `room`."""
        (n, t, width), middle, heads = z.shape, self.middle, self.heads
        attending = (heads.number, middle // heads.number, n, heads.causal) if heads else (0, 0, n, False)
        seen = pointers(heads.mask, heads.angles) if heads else (None, None)
        sizes = (self.threshold, n * t, width, self.wide, middle, *attending, self.rectified)
        kept, normal, found, more, _ = room
        inside = inner.data_ptr()
        buffers = (out.data_ptr(), kept, normal, inside, more, found if heads else inside)
        scale = VALUES / (VALUES - self.threshold)
        made = Native(*pointers(*self.weights, self.random), *seen, self.epsilon, scale, *sizes, *buffers)
        if self.seen:
            made.keys, made.values = pointers(*self.seen)
            made.seen, made.count = layouts(self.seen[0]), self.seen[0].shape[2]
        return made

    def places(self, n: int, t: int) -> list[int]:
        """Where `kept`, `normal`, `found` and `more` of sublayer.c begin in a stretch, and where the last one ends."""
        assert self.weights[0] is not None
        rows, heads, keys = n * t, self.heads, self.seen[0].shape[2] if self.seen else t
        more = heads.number * (keys + -keys % NARROW) if heads else 0 if self.rectified else self.wide
        sizes = (2, len(self.weights[0]), self.middle if heads else 0, more)
        return [rows * end for end in accumulate(sizes, initial=0)]


def pointers(*tensors: Tensor | None) -> list[int | None]:
    return [None if x is None else x.data_ptr() for x in tensors]


class Chain(torch.autograd.Function):
    """Sub-layer after sub-layer; further results are W₁ LN(z) + b₁ of those that attend to themselves.

    `inputs` are the weights of all, then the keys and values that are seen.
    """

    @staticmethod
    def forward(
        ctx: Any, z: Float32[Tensor, "n t d"], sublayers: Sequence[Sublayer], *inputs: Tensor | None
    ) -> tuple[Float32[Tensor, "n t _"], ...]:
        assert library
        z = z.contiguous()
        n, t, _ = z.shape
        outs = [torch.empty_like(z) for _ in sublayers]
        inners = [z.new_empty(n, t, each.wide) for each in sublayers]
        places = [each.places(n, t) for each in sublayers]
        room = z.new_empty(sum(each[-1] for each in places))
        starts = accumulate((4 * each[-1] for each in places), initial=room.data_ptr())
        rooms = [[start + 4 * place for place in each] for start, each in zip(starts, places, strict=False)]
        parts = zip(sublayers, outs, inners, rooms, strict=True)
        chain = (Native * len(sublayers))(*(each.native(z, out, inner, mine) for each, out, inner, mine in parts))
        check(library.chain_forwards(sgemm(), z.data_ptr(), ctypes.addressof(chain), len(chain)))
        ctx.save_for_backward(z, room, *inners, *outs[:-1], *inputs)
        ctx.sublayers, ctx.chain = sublayers, chain
        ctx.set_materialize_grads(False)
        return outs[-1], *(inner for inner, each in zip(inners, sublayers, strict=True) if each.looks_at_itself)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, g: Float32[Tensor, "n t d"] | None, *of_inners: Float32[Tensor, "n t qkv"] | None
    ) -> tuple[Tensor | None, ...]:
        assert library
        z, *_ = saved = ctx.saved_tensors
        chain, count = ctx.chain, len(ctx.chain)
        several = sum(len(each.seen) for each in ctx.sublayers)
        weights = saved[len(saved) - several - count * WEIGHTS : len(saved) - several]
        g = torch.zeros_like(z) if g is None else g.contiguous()
        dz, found = torch.empty_like(z), [None if x is None else torch.empty_like(x) for x in weights]
        past = [None if x is None else x.contiguous() for x in of_inners]
        given = iter(past)
        of_seen: list[Tensor] = []
        for place, (each, native) in enumerate(zip(ctx.sublayers, chain, strict=True)):
            native.into = (POINTER * 7)(None, *pointers(*found[place * WEIGHTS : (place + 1) * WEIGHTS]))
            native.past_inner = pointers(next(given))[0] if each.looks_at_itself else None
            if each.seen:
                pair = side_by_side(each.seen[0])
                native.into_keys, native.into_values = pointers(*pair)
                native.into_seen = layouts(pair[0])
                of_seen += pair
        widest = max(native.wide + native.middle for native in chain)
        room = z.new_empty(z.numel() // z.shape[2] * (4 * z.shape[2] + widest))
        places = pointers(dz, room, g, z)
        check(library.chain_backwards(sgemm(), *places, ctypes.addressof(chain), count))
        return dz, None, *found, *of_seen


def chain(z: Float32[Tensor, "n t d"], sublayers: Sequence[Sublayer]) -> tuple[Float32[Tensor, "n t _"], ...]:
    """z after all of them, and the queries, keys and values of those that attend to themselves, side by side."""
    weights = [weight for each in sublayers for weight in each.weights]
    seen = [x for each in sublayers for x in each.seen]
    found: tuple[Tensor, ...] = Chain.apply(z, sublayers, *weights, *seen)  # type: ignore[no-untyped-call]
    return found
