"""What decoding does between its matrix products, in C: one pass where torch makes several.

Without the library, `native` is None, and models are run by the layers that trained them.
"""

import ctypes
from collections.abc import Sequence

import torch
from jaxtyping import Float32, Int32, Int64
from torch import Tensor

from regard.errors import DecodingError
from regard.native.library import NUMBER, POINTER, REAL, library

PACKED, INNER = 0, 12  # where these stand among the weights of a layer


class Weights:
    """The weights of all layers of a decoder, in the order of inference.c, and what is common to the layers."""

    def __init__(self, layers: Sequence[Sequence[Tensor]], heads: int, post: bool, epsilon: float) -> None:
        self.kept = [weight for layer in layers for weight in layer]  # so that nobody frees them
        self.pointers = (POINTER * len(self.kept))(*[weight.data_ptr() for weight in self.kept])
        self.heads, self.post, self.epsilon = heads, post, epsilon
        self.all_heads, self.inner = layers[0][PACKED].shape[1] // 3, layers[0][INNER].shape[1]


class Native:
    """The functions of inference.c on tensors: float32, in the processor's memory, rows without gaps inside."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._past, self._memory, self._turn = library.attend_past, library.attend_memory, library.turn_rows
        self._past.argtypes = [POINTER, POINTER, NUMBER, POINTER, POINTER, *[NUMBER] * 5]
        self._memory.argtypes = [POINTER, POINTER, NUMBER, *[POINTER] * 4, *[NUMBER] * 5]
        self._turn.argtypes = [*[POINTER] * 3, *[NUMBER] * 5, REAL]
        self._shift, self._norm = library.shift, library.norm
        self._shift.argtypes = [POINTER, POINTER, NUMBER, NUMBER, REAL]
        self._norm.argtypes = [*[POINTER] * 5, NUMBER, NUMBER, REAL]
        self._decode, self._best = library.decode, library.best
        self._decode.argtypes = [*[POINTER] * 11, *[NUMBER] * 8, ctypes.c_int32, REAL]
        self._best.argtypes = [*[POINTER] * 6, *[NUMBER] * 5]
        for function in (self._turn, self._shift, self._norm, self._best):
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
        """What each query finds in the memory of its sentence, whose entries are the first `counts` of `places`."""
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

    def shift(self, x: Float32[Tensor, "n e"], bias: Float32[Tensor, " e"], least: float) -> None:
        """max(x + b, least), in place."""
        self._shift(x.data_ptr(), bias.data_ptr(), *x.shape, least)

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
        done = self._decode(
            x.data_ptr(), y.data_ptr(), packed.data_ptr(), weights.pointers, (POINTER * len(keys))(*keys),
            origin.data_ptr(), (POINTER * layers)(*[seen.data_ptr() for seen in memory]), sentence.data_ptr(),
            places.data_ptr(), counts.data_ptr(), None if angles is None else angles.data_ptr(), layers, n, x.shape[1],
            weights.inner, weights.heads, width, length, places.shape[1], weights.post, weights.epsilon,
        )  # fmt: skip
        return checked(packed, done)

    def best(
        self, logits: Float32[Tensor, "rows c"], start: Float32[Tensor, "n w"], banned: Int64[Tensor, " b"], k: int
    ) -> tuple[Float32[Tensor, "n k"], Float32[Tensor, "n k"], Int64[Tensor, "n k"]]:
        """For each sentence the k largest of start + log softmax(logits) over its w rows, largest first.

        The sums, the second term alone, and the place row · columns + column, −1 where there is none. The columns
        `banned` are not chosen: the logits are −∞ there afterwards.
        """
        (n, w), columns = start.shape, logits.shape[1]
        if len(banned) and int(banned.max()) >= columns:
            raise DecodingError(f"banned: found column {int(banned.max())} of {columns}; give columns that exist")
        sums, steps, places = logits.new_empty(n, k), logits.new_empty(n, k), banned.new_empty(n, k)
        pointers = (tensor.data_ptr() for tensor in (sums, steps, places, logits, start, banned))
        self._best(*pointers, len(banned), n, w, columns, k)
        return sums, steps, places


def checked(found: Float32[Tensor, "*shape"], done: int) -> Float32[Tensor, "*shape"]:
    if not done:
        raise DecodingError("attention: the system has no memory left; decode fewer sentences at a time")
    return found


native = Native(library) if library else None
