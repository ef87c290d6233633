"""What decoding does between its matrix products, in C: one pass where torch makes several.

Without the library, `native` is None, and models are run by the layers that trained them.
"""

import ctypes
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float32, Int32, Int64
from torch import Tensor

from regard.errors import DecodingError
from regard.native.library import NUMBER, POINTER, REAL, library
from regard.native.shares import in_shares

PANEL = 16  # columns, as product.h has it


def filled(values: Float32[Tensor, "*rows e"]) -> Float32[Tensor, "*rows panels"]:
    """With zeros up to the end of the last panel."""
    return F.pad(values, (0, -values.shape[-1] % PANEL)).contiguous()


class Panels:
    """x W + b with W as product.h packs it: panel by panel of its columns, each row by row."""

    def __init__(self, weight: Float32[Tensor, "d e"], bias: Float32[Tensor, " e"] | None) -> None:
        self.rows, self.columns = weight.shape
        self.weight = filled(weight).view(self.rows, -1, PANEL).transpose(0, 1).contiguous()
        self.bias = filled(weight.new_zeros(self.columns) if bias is None else bias)


# Of each sub-layer its first product and its last, and gain and shift of the norm behind it.
LayerWeights = Sequence[tuple[Panels, Panels, Tensor, Tensor]]


class Weights:
    """The weights of all layers of a decoder, in the order of inference.c, and what is common to the layers."""

    def __init__(self, layers: Sequence[LayerWeights], heads: int, post: bool, epsilon: float) -> None:
        self.heads, self.post, self.epsilon = heads, post, epsilon
        (packed, *_), _, (inner, *_) = layers[0]
        self.all_heads, self.inner = packed.columns // 3, inner.columns
        parts = [part for layer in layers for part in layer]
        self.kept = [  # so that nobody frees them
            weight
            for first, last, *norm in parts
            for weight in (first.weight, first.bias, last.weight, last.bias, *norm)
        ]
        self.pointers = (POINTER * len(self.kept))(*[weight.data_ptr() for weight in self.kept])


class Native:
    """The functions of inference.c on tensors: float32, in the processor's memory, rows without gaps inside."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._past, self._memory, self._turn = library.attend_past, library.attend_memory, library.turn_rows
        self._past.argtypes = [POINTER, POINTER, NUMBER, POINTER, POINTER, *[NUMBER] * 5]
        self._memory.argtypes = [POINTER, POINTER, NUMBER, *[POINTER] * 4, *[NUMBER] * 5]
        self._turn.argtypes = [*[POINTER] * 3, *[NUMBER] * 5, REAL]
        self._norm = library.norm
        self._norm.argtypes = [*[POINTER] * 5, NUMBER, NUMBER, REAL]
        self._decode, self._multiply = library.decode, library.multiply
        self._decode.argtypes = [*[POINTER] * 11, *[NUMBER] * 8, ctypes.c_int32, REAL, NUMBER, NUMBER]
        self._multiply.argtypes = [POINTER, NUMBER, POINTER, NUMBER, POINTER, POINTER, *[NUMBER] * 3, REAL]
        self._best_of, self._largest_of = library.best_of_product, library.largest_of_product
        self._best_of.argtypes = [*[POINTER] * 9, *[NUMBER] * 7]
        self._largest_of.argtypes = [*[POINTER] * 6, *[NUMBER] * 5]
        for function in (self._turn, self._norm, self._multiply):
            function.restype = None

    def past(
        self, steps: Sequence[Float32[Tensor, "_ qkv"]], origin: Int32[Tensor, "n t"], heads: int
    ) -> Float32[Tensor, "n d"]:
        """What the queries of the last step find in all steps: softmax(q·k / √e) v over the row's own past, by heads.

        A step has query, key and value of each of its rows; origin[r, t] is the row of step t that r descends from.
        """
        n, length = origin.shape
        stride = steps[-1].shape[1]
        found = steps[-1].new_empty(n, stride // 3)
        keys = (POINTER * length)(*[step.data_ptr() + 4 * (stride // 3) for step in steps])
        done = self._past(
            found.data_ptr(), steps[-1].data_ptr(), stride, keys, origin.data_ptr(),
            n, length, stride, heads, stride // (3 * heads),
        )  # fmt: skip
        return checked(found, done)

    def memory(
        self,
        q: Float32[Tensor, "n d"],
        memory: Float32[Tensor, "entries kv"],
        sentence: Int32[Tensor, " n"],
        places: Int32[Tensor, "m s"],
        counts: Int32[Tensor, " m"],
        heads: int,
    ) -> Float32[Tensor, "n d"]:
        """What each query finds in the memory of its sentence m: the first counts[m] of places[m] are its entries."""
        n, d = q.shape
        found = torch.empty_like(q)
        done = self._memory(
            found.data_ptr(), q.data_ptr(), d, memory.data_ptr(), sentence.data_ptr(), places.data_ptr(),
            counts.data_ptr(), n, places.shape[1], 2 * d, heads, d // heads,
        )  # fmt: skip
        return checked(found, done)

    def turn(self, packed: Float32[Tensor, "n qkv"], angles: Float32[Tensor, "1 e"], heads: int) -> None:
        """Queries and keys turned by rotary positions, in place."""
        (n, stride), place = packed.shape, packed.data_ptr()
        self._turn(place, place, angles.data_ptr(), n, 1, stride, 2 * heads, stride // (3 * heads), 1.0)

    def norm(
        self,
        x: Float32[Tensor, "n d"],
        bias: Float32[Tensor, " d"],
        gain: Float32[Tensor, " d"],
        offset: Float32[Tensor, " d"],
        epsilon: float,
        out: Float32[Tensor, "n d"],
    ) -> None:
        """x + b, written over x, and its layer norm written to `out`, which may be x."""
        pointers = (tensor.data_ptr() for tensor in (out, x, bias, gain, offset))
        self._norm(*pointers, *x.shape, epsilon)

    def decode(
        self,
        x: Float32[Tensor, "n d"],
        y: Float32[Tensor, "n d"],
        weights: Weights,
        steps: Sequence[Sequence[Float32[Tensor, "_ qkv"]]],
        origin: Int32[Tensor, "n t"],
        memory: Sequence[Float32[Tensor, "entries kv"]],
        sentence: Int32[Tensor, " n"],
        places: Int32[Tensor, "m s"],
        counts: Int32[Tensor, " m"],
        angles: Float32[Tensor, "1 e"] | None,
    ) -> Float32[Tensor, "layers n qkv"]:
        """One token through all layers, in one call: y becomes what the last layer gives; the stream x is written over.

        steps[layer] are those before this one; its own queries, keys and values are the result.
        """
        (n, length), layers = origin.shape, len(steps)
        width = weights.all_heads // weights.heads
        packed = x.new_empty(layers, n, 3 * weights.all_heads)
        before = [[step.data_ptr() for step in past] for past in steps]
        own = [packed.data_ptr() + 4 * place * packed.stride(0) for place in range(layers)]
        keys = [at + 4 * weights.all_heads for past, mine in zip(before, own, strict=True) for at in (*past, mine)]
        fixed = (
            x.data_ptr(), y.data_ptr(), packed.data_ptr(), weights.pointers, (POINTER * len(keys))(*keys),
            origin.data_ptr(), (POINTER * layers)(*[seen.data_ptr() for seen in memory]), sentence.data_ptr(),
            places.data_ptr(), counts.data_ptr(), None if angles is None else angles.data_ptr(), layers, n, x.shape[1],
            weights.inner, weights.heads, width, length, places.shape[1], weights.post, weights.epsilon,
        )  # fmt: skip
        return checked(packed, in_shares(n, 1, lambda first, last: self._decode(*fixed, first, last)))

    def product(self, x: Float32[Tensor, "n d"], layer: Panels, least: float = -math.inf) -> Float32[Tensor, "n e"]:
        """max(x W + b, least)."""
        out = x.new_empty(len(x), layer.columns)
        self._product(out, x, layer, layer.bias.data_ptr(), least)
        return out

    def add_product(self, out: Float32[Tensor, "n e"], x: Float32[Tensor, "n d"], layer: Panels) -> None:
        """out + x W, written over `out`; without the bias."""
        self._product(out, x, layer, None, -math.inf)

    def _product(
        self, out: Float32[Tensor, "n e"], x: Float32[Tensor, "n d"], layer: Panels, start: int | None, least: float
    ) -> None:
        d, e, to, at, weight = layer.rows, layer.columns, out.data_ptr(), x.data_ptr(), layer.weight.data_ptr()

        def share(first: int, last: int) -> int:
            self._multiply(to + 4 * e * first, e, at + 4 * d * first, d, weight, start, last - first, d, e, least)
            return 1

        in_shares(len(x), 1, share)

    def best_of_product(
        self,
        x: Float32[Tensor, "rows d"],
        layer: Panels,
        more: Float32[Tensor, " rows"] | None,
        start: Float32[Tensor, "n w"],
        banned: Int64[Tensor, " b"],
        k: int,
    ) -> tuple[Float32[Tensor, "n k"], Float32[Tensor, "n k"], Int64[Tensor, "n k"]]:
        """For each sentence the k largest of start + log softmax(x W + b) over its w rows, largest first.

        The sums, the second term alone, and the place row · columns + column, −1 where there is none. The columns
        `banned` are not chosen; the last column is `more` than x W + b. The product is never whole in memory.
        """
        n, w = start.shape
        refuse_strangers(banned, layer.columns)
        sums, steps, places = x.new_empty(n, k), x.new_empty(n, k), banned.new_empty(n, k)
        tensors = (sums, steps, places, x, layer.weight, layer.bias, more, start, banned)
        fixed = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
        fixed += [len(banned), w, layer.rows, layer.columns, k]
        done = in_shares(n, w, lambda first, last: self._best_of(*fixed, first, last))
        checked(sums, done)
        return sums, steps, places

    def largest_of_product(
        self, x: Float32[Tensor, "rows d"], layer: Panels, banned: Int64[Tensor, " b"]
    ) -> tuple[Float32[Tensor, " rows"], Int64[Tensor, " rows"]]:
        """The largest number of each row of x W + b without the columns `banned`, and its column; or NaN."""
        refuse_strangers(banned, layer.columns)
        largest, places = x.new_empty(len(x)), banned.new_empty(len(x))
        fixed = [tensor.data_ptr() for tensor in (largest, places, x, layer.weight, layer.bias, banned)]
        fixed += [len(banned), layer.rows, layer.columns]
        done = in_shares(len(x), 1, lambda first, last: self._largest_of(*fixed, first, last))
        return checked(largest, done), places


def refuse_strangers(banned: Int64[Tensor, " b"], columns: int) -> None:
    if len(banned) and int(banned.max()) >= columns:
        raise DecodingError(f"banned: found column {int(banned.max())} of {columns}; give columns that exist")


def checked(found: Float32[Tensor, "*shape"], done: int | bool) -> Float32[Tensor, "*shape"]:
    if not done:
        raise DecodingError("attention: the system has no memory left; decode fewer sentences at a time")
    return found


native = Native(library) if library else None
