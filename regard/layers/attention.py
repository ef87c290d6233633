"""Attention: the equation as one function, then the two modules that own its projections."""

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.cache import Cache, KeyValues
from regard.layers.initialise import xavier
from regard.layers.packed import unpack
from regard.layers.relations import Relative, rotate
from regard.native.training import fits, turned


def attend(
    q: Float[Tensor, "*batch q d"],
    k: Float[Tensor, "*batch k d"],
    v: Float[Tensor, "*batch k e"],
    mask: Bool[Tensor, "*#batch #q k"] | None = None,
    bias: Float[Tensor, "*#batch #q k"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "*batch q e"], Float[Tensor, "*batch q k"]]:
    """softmax(q kᵀ / √d + bias) v, and the weights softmax(…) themselves.

    A query with no visible key receives zeros, in the output and in the weights. `scale` replaces 1/√d (1.0 is the
    unscaled form); attend(x, x, x) is self-attention without parameters. This is the reference that every fast kernel
    is held to. Vaswani et al. 2017, eq. 1.
    """
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is None:
        weights = scores.softmax(-1)
    else:
        # The lowest finite score, not −∞: a row that sees nothing would be NaN, forwards and backwards.
        hidden = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~mask, hidden).softmax(-1).masked_fill(~mask, 0.0)
    return weights @ v, weights


def split_heads(x: Float[Tensor, "n t d"], heads: int) -> Float[Tensor, "n h t e"]:
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)  # (n, t, h·e) → (n, h, t, e)


def merge_heads(x: Float[Tensor, "n h t e"]) -> Float[Tensor, "n t d"]:
    return x.transpose(1, 2).flatten(2)  # (n, h, t, e) → (n, t, h·e)


C = TypeVar("C")  # the cache that a kernel reads


@runtime_checkable
class Kernel(Protocol[C]):
    """How queries read keys and values: a module of its own, so that a forward hook can watch it.

    The hook calls `weights` with the inputs of the call that it saw, and gets the exact weights of the reference.
    `mask` hides keys; `bias` is by distance, as in `Relative`.
    """

    def begin(self, keys: Float[Tensor, "n h 0 e"], values: Float[Tensor, "n h 0 f"]) -> C: ...
    def extend(self, past: C, keys: Float[Tensor, "n h t e"], values: Float[Tensor, "n h t f"]) -> C: ...
    def __call__(
        self,
        q: Float[Tensor, "n h q e"],
        seen: C,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q f"]: ...
    def weights(
        self,
        q: Float[Tensor, "n h q e"],
        seen: C,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q k"]: ...


class SelfAttention(nn.Module):
    """Concat(head_1 … head_h) W^O with head_i = attend(x W_i^Q, x W_i^K, x W_i^V). Vaswani et al. 2017, §3.2.2.

    The three projections of all heads are one packed layer: one large product is faster than three. Where layers of a
    stack have lost heads, `places` says which rows of a bias that they share belong to the heads of this one.
    """

    places: Tensor | None

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        kernel: Kernel[Any],
        bias: bool = True,
        places: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.head_width, self.kernel = heads, head_width, kernel
        self.packed = xavier(nn.Linear(width, 3 * heads * head_width, bias), parts=3)
        self.output = xavier(nn.Linear(heads * head_width, width, bias))
        self.register_buffer("places", None if places is None else torch.tensor(places), persistent=False)

    def begin(self, x: Float[Tensor, "n t d"]) -> Cache:
        """The memory of nothing, for the rows of x."""
        nothing = x.new_zeros(len(x), self.heads, 0, self.head_width)
        cache: Cache = self.kernel.begin(nothing, nothing)
        return cache

    def forward(
        self, x: Float[Tensor, "n t d"], past: Cache, mask: Bool[Tensor, "n k"] | None, relative: Relative
    ) -> tuple[Float[Tensor, "n t d"], Cache]:
        """x attends to `past` and to itself; the second result is the past of the next call."""
        packed, angles, bias = self.packed(x), relative.angles, relative.bias
        if angles is not None and fits(packed, angles):
            packed, angles = turned(packed, angles, 2 * self.heads), None
        q, k, v = unpack(packed, 3, self.heads)
        if angles is not None:
            q, k = rotate(q, angles), rotate(k, angles)
        if bias is not None and self.places is not None:
            bias = bias[self.places]
        seen = self.kernel.extend(past, k, v)
        return self.output(merge_heads(self.kernel(q, seen, mask, bias))), seen


class CrossAttention(nn.Module):
    """The same, with queries from x and keys and values from a memory that `remember` projects once."""

    def __init__(self, width: int, heads: int, head_width: int, kernel: Kernel[KeyValues], bias: bool = True) -> None:
        super().__init__()
        self.heads, self.kernel = heads, kernel
        self.query = xavier(nn.Linear(width, heads * head_width, bias))
        self.packed = xavier(nn.Linear(width, 2 * heads * head_width, bias), parts=2)
        self.output = xavier(nn.Linear(heads * head_width, width, bias))

    def remember(self, memory: Float[Tensor, "n s d"]) -> KeyValues:
        k, v = unpack(self.packed(memory), 2, self.heads)
        return KeyValues(k, v)

    def forward(
        self, x: Float[Tensor, "n t d"], seen: KeyValues, mask: Bool[Tensor, "n s"] | None
    ) -> Float[Tensor, "n t d"]:
        y: Tensor = self.output(merge_heads(self.kernel(split_heads(self.query(x), self.heads), seen, mask, None)))
        return y
