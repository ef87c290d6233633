"""What decoding does between its matrix products, in C: one pass where torch makes several.

Without the library, `native` is None, and models are run by the layers that trained them.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

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


if library:
    library.pack.argtypes = [POINTER, POINTER, NUMBER, NUMBER]
    library.pack.restype = None


class Panels:
    """x W + b with W as product.h packs it: panel by panel of its columns, each row by row."""

    def __init__(self, weight: Float32[Tensor, "d e"], bias: Float32[Tensor, " e"] | None) -> None:
        assert library
        self.rows, self.columns = weight.shape
        self.weight = weight.new_empty(-(-self.columns // PANEL), self.rows, PANEL)
        by_columns = weight.mT.contiguous()
        library.pack(self.weight.data_ptr(), by_columns.data_ptr(), *weight.shape)
        self.bias = filled(weight.new_zeros(self.columns) if bias is None else bias)


# Of each sub-layer its first product and its last, and gain and shift of the norm behind it.
LayerWeights = Sequence[tuple[Panels, Panels, Tensor, Tensor]]


class Stack(ctypes.Structure):
    """`stack` of stack.h."""

    _fields_: ClassVar = [
        ("weights", POINTER),
        *[(name, NUMBER) for name in ("layers", "d", "inner", "heads", "width")],
        ("post", ctypes.c_int32),
        ("epsilon", REAL),
    ]


class ReadFrom(ctypes.Structure):
    """`sources` of stack.h."""

    _fields_: ClassVar = [("memory", POINTER), ("places", POINTER), ("counts", POINTER), ("most", NUMBER)]


class Past(ctypes.Structure):
    """`past` of stack.h."""

    _fields_: ClassVar = [
        *[(name, POINTER) for name in ("steps", "origin", "begun")],
        *[(name, NUMBER) for name in ("length", "reach")],
    ]


class WordsOf(ctypes.Structure):
    """`words` of greedy.c."""

    _fields_: ClassVar = [
        *[(name, POINTER) for name in ("table", "positions", "gain", "shift", "angles", "panels", "bias")],
        *[(name, POINTER) for name in ("banned", "ids")],
        *[(name, NUMBER) for name in ("bans", "columns", "bos", "eos")],
        ("scale", REAL),
    ]


class Weights:
    """The weights of all layers of a stack, in the order in which C meets them, and what is common to the layers."""

    def __init__(self, layers: Sequence[LayerWeights], heads: int, post: bool, epsilon: float) -> None:
        (packed, last, *_), *_, (inner, *_) = layers[0]
        self.all_heads, width = packed.columns // 3, last.columns
        parts = [part for layer in layers for part in layer]
        self.kept = [  # so that nobody frees them
            weight
            for first, last, *norm in parts
            for weight in (first.weight, first.bias, last.weight, last.bias, *norm)
        ]
        self.pointers = (POINTER * len(self.kept))(*[weight.data_ptr() for weight in self.kept])
        sizes = (len(layers), width, inner.columns, heads, self.all_heads // heads)
        self.stack = Stack(ctypes.addressof(self.pointers), *sizes, post, epsilon)


@dataclass(frozen=True)
class Sources:
    """The real entries of the memory of m sentences of up to s tokens, in each layer's view; padding has none.

    The first counts[i] of places[i] are the entries of sentence i.
    """

    places: Int32[Tensor, "m s"]
    counts: Int32[Tensor, " m"]
    seen: tuple[Float32[Tensor, "entries _"], ...]  # keys and values; pruned layers have fewer

    def read_from(self) -> tuple[ReadFrom, object]:
        """For C, and what must outlive it."""
        memory = (POINTER * len(self.seen))(*[seen.data_ptr() for seen in self.seen])
        places = self.places.data_ptr(), self.counts.data_ptr(), self.places.shape[1]
        return ReadFrom(ctypes.addressof(memory), *places), memory


@dataclass(frozen=True)
class Choice:
    """Vectors to tokens: the largest column of the output layer, of those not `banned`, stands for ids[column].

    No ids: each column for itself. An output begins after `bos` and ends with `eos`.
    """

    output: Panels
    banned: Int64[Tensor, " b"]
    ids: Int64[Tensor, " columns"] | None
    bos: int
    eos: int


@dataclass(frozen=True)
class Entry:
    """Tokens to vectors: s · E[token] + positions[step], and before the first layer a norm (gain and shift) or none.

    The angles of each step, if any, turn queries and keys.
    """

    table: Float32[Tensor, "vocab d"]
    scale: float
    positions: Float32[Tensor, "t d"]
    angles: Float32[Tensor, "t e"] | None
    norm: tuple[Float32[Tensor, " d"], Float32[Tensor, " d"]] | None


def words_of(entry: Entry, choice: Choice) -> WordsOf:
    """Both for C; they must outlive it."""
    norm, output = entry.norm or (None, None), choice.output
    tensors = (entry.table, entry.positions, *norm, entry.angles, output.weight, output.bias, choice.banned, choice.ids)
    places = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    return WordsOf(*places, len(choice.banned), output.columns, choice.bos, choice.eos, entry.scale)


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
        self._decode.argtypes = [*[POINTER] * 8, *[NUMBER] * 4]
        self._multiply.argtypes = [POINTER, NUMBER, POINTER, NUMBER, POINTER, POINTER, *[NUMBER] * 3, REAL]
        self._best_of, self._largest_of = library.best_of_product, library.largest_of_product
        self._best_of.argtypes = [*[POINTER] * 9, *[NUMBER] * 7]
        self._largest_of.argtypes = [*[POINTER] * 6, *[NUMBER] * 5]
        self._greedy, self._encode = library.greedy, library.encode
        self._encode.argtypes = [*[POINTER] * 5, NUMBER, NUMBER]
        self._greedy.argtypes = [*[POINTER] * 6, *[NUMBER] * 3]
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
        sentence: Int32[Tensor, " n"],
        sources: Sources,
        angles: Float32[Tensor, "1 e"] | None,
    ) -> Float32[Tensor, "layers n qkv"]:
        """One token through all layers, in one call: y becomes what the last layer gives; the stream x is written over.

        steps[layer] are those before this one; its own queries, keys and values are the result.
        """
        (n, length), layers = origin.shape, len(steps)
        packed = x.new_empty(layers, n, 3 * weights.all_heads)
        made = [[step.data_ptr() for step in past] for past in steps]
        own = [packed.data_ptr() + 4 * place * packed.stride(0) for place in range(layers)]
        keys = [at + 4 * weights.all_heads for past, mine in zip(made, own, strict=True) for at in (*past, mine)]
        read, _memory = sources.read_from()
        pointers = (POINTER * len(keys))(*keys)
        before = Past(ctypes.addressof(pointers), origin.data_ptr(), None, length, length)
        fixed = (
            ctypes.byref(weights.stack), ctypes.byref(read), ctypes.byref(before), x.data_ptr(), y.data_ptr(),
            packed.data_ptr(), sentence.data_ptr(), None if angles is None else angles.data_ptr(), False, n,
        )  # fmt: skip
        return checked(packed, in_shares(n, 1, lambda first, last: self._decode(*fixed, first, last)))

    def encode(
        self,
        x: Float32[Tensor, "rows d"],
        y: Float32[Tensor, "rows d"],
        weights: Weights,
        starts: Int64[Tensor, " bounds"],
        angles: Float32[Tensor, "rows e"] | None,
    ) -> None:
        """All layers of an encoder, in one call: y becomes what the last one gives; the stream x is written over.

        The tokens of sentence i are the rows from starts[i] to starts[i + 1]; each has the angles of its position.
        """
        turned = None if angles is None else angles.data_ptr()
        fixed = (ctypes.byref(weights.stack), x.data_ptr(), y.data_ptr(), turned, starts.data_ptr())
        typical = max(1, len(x) // max(1, len(starts) - 1))
        checked(y, in_shares(len(starts) - 1, typical, lambda first, last: self._encode(*fixed, first, last)))

    def greedy(
        self, weights: Weights, sources: Sources, entry: Entry, choice: Choice, limits: Int64[Tensor, " n"]
    ) -> tuple[Int64[Tensor, "n longest"], Int64[Tensor, " n"]]:
        """The likeliest token, step by step, until the end token or `limits`: the tokens, and how many there are.

        −1 of them: no column of that sentence had a finite number.
        """
        refuse_strangers(choice.banned, choice.output.columns)
        longest = int(limits.max()) if len(limits) else 0
        written, lengths = limits.new_zeros(len(limits), longest), torch.zeros_like(limits)
        (read, _memory), spoken = sources.read_from(), words_of(entry, choice)
        fixed = (
            ctypes.byref(weights.stack), ctypes.byref(read), ctypes.byref(spoken), written.data_ptr(),
            lengths.data_ptr(), limits.data_ptr(), longest,
        )  # fmt: skip
        done = in_shares(len(limits), 1, lambda first, last: self._greedy(*fixed, first, last))
        checked(sources.seen[0], done)
        return written, lengths

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
