"""What training does between its matrix products, in C, with gradients: one pass where torch makes several.

The plain forms, which stand in the layers, are the reference, and a test holds each pair equal.
"""

import ctypes
from typing import Any

import torch
from jaxtyping import Float, Float32, Int64, UInt8
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.native.library import NUMBER, POINTER, REAL, library

VALUES = 256  # of a random byte


class Kernels:
    """The functions of training.c on tensors without gaps."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._drop_add, self._drop, self._turn = library.drop_add, library.drop, library.turn_rows
        self._drop_add.argtypes = [*[POINTER] * 4, NUMBER, ctypes.c_int32, REAL]
        self._drop.argtypes = [*[POINTER] * 3, NUMBER, ctypes.c_int32, REAL]
        self._turn.argtypes = [*[POINTER] * 3, *[NUMBER] * 5, REAL]
        self._gelu = library.gelu
        self._gelu.argtypes = [*[POINTER] * 3, NUMBER]
        self._cross_entropy = library.cross_entropy
        self._cross_entropy.argtypes = [POINTER, POINTER, NUMBER, NUMBER, REAL]
        self._cross_entropy.restype = ctypes.c_double
        self._consistency = library.consistency
        self._consistency.argtypes = [*[POINTER] * 5, NUMBER, NUMBER, REAL, REAL]
        for function in (self._drop_add, self._drop, self._gelu, self._turn, self._consistency):
            function.restype = None

    def drop_add(
        self,
        z: Float32[Tensor, "*shape"],
        y: Float32[Tensor, "*shape"],
        random: UInt8[Tensor, "*shape"],
        threshold: int,
    ) -> Float32[Tensor, "*shape"]:
        """z + y ⊙ m / (1 − p), where m is 1 for bytes of at least p · 256 = threshold, else 0."""
        out = torch.empty_like(y)
        pointers = (tensor.data_ptr() for tensor in (out, z, y, random))
        self._drop_add(*pointers, y.numel(), threshold, VALUES / (VALUES - threshold))
        return out

    def drop(
        self, y: Float32[Tensor, "*shape"], random: UInt8[Tensor, "*shape"], threshold: int
    ) -> Float32[Tensor, "*shape"]:
        """The second term of `drop_add` alone."""
        out = torch.empty_like(y)
        self._drop(out.data_ptr(), y.data_ptr(), random.data_ptr(), y.numel(), threshold, VALUES / (VALUES - threshold))
        return out

    def gelu(self, x: Float32[Tensor, "*shape"]) -> tuple[Float32[Tensor, "*shape"], Float32[Tensor, "*shape"]]:
        """x Φ(x), and its derivative by x."""
        y, slope = torch.empty_like(x), torch.empty_like(x)
        self._gelu(y.data_ptr(), slope.data_ptr(), x.data_ptr(), x.numel())
        return y, slope

    def cross_entropy(
        self, logits: Float32[Tensor, "rows vocab"], targets: Int64[Tensor, " rows"], smoothing: float
    ) -> float:
        """Σ of `smoothed_cross_entropy`; its gradients are written over the logits."""
        check_ids(targets, logits.shape[1])
        found: float = self._cross_entropy(logits.data_ptr(), targets.data_ptr(), *logits.shape, smoothing)
        return found

    def consistency(
        self,
        logits: Float32[Tensor, "2 rows vocab"],
        targets: Int64[Tensor, " rows"],
        smoothing: float,
        pull: float,
    ) -> tuple[float, float]:
        """½ Σ of both passes' cross-entropies, and Σ (KL(p ‖ q) + KL(q ‖ p)), which counts `pull` times.

        The gradients of their sum are written over the logits.
        """
        _, rows, vocabulary = logits.shape
        check_ids(targets, vocabulary)
        found, apart = (ctypes.c_double * 2)(), torch.empty(vocabulary)
        first, second = logits
        pointers = (tensor.data_ptr() for tensor in (first, second, apart, targets))
        self._consistency(ctypes.addressof(found), *pointers, rows, vocabulary, smoothing, pull)
        return found[0], found[1]

    def turn(
        self,
        out: Float32[Tensor, "n t qkv"],
        x: Float32[Tensor, "n t qkv"],
        angles: Float32[Tensor, "t e"],
        vectors: int,
        sense: float,
    ) -> None:
        """The first `vectors` vectors of each row turned by its position's angles, or back; the others copied."""
        n, t, stride = x.shape
        pointers = (tensor.data_ptr() for tensor in (out, x, angles))
        self._turn(*pointers, n * t, t, stride, vectors, angles.shape[1], sense)


def check_ids(targets: Int64[Tensor, " rows"], vocabulary: int) -> None:
    """C reads where it is told to."""
    low, high = targets.aminmax() if len(targets) else (0, 0)
    if int(low) < 0 or int(high) >= vocabulary:
        raise IndexError(f"targets: found {int(low)} to {int(high)}, expected ids below {vocabulary}")


kernels = Kernels(library) if library else None


def fits(*tensors: Tensor) -> bool:
    """Whether these can be read here: there is a library, and they are float32 in the processor's memory."""
    return kernels is not None and all(x.dtype == torch.float32 and x.device.type == "cpu" for x in tensors)


class DropAdd(torch.autograd.Function):
    """`Kernels.drop_add`. What is kept for the gradient is the bytes."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Float[Tensor, "*shape"],
        y: Float[Tensor, "*shape"],
        random: UInt8[Tensor, "*shape"],
        threshold: int,
    ) -> Float[Tensor, "*shape"]:
        assert kernels
        ctx.save_for_backward(random)
        ctx.threshold = threshold
        return kernels.drop_add(z.contiguous(), y.contiguous(), random, threshold)

    @staticmethod
    def backward(ctx: Any, gradient: Float[Tensor, "*shape"]) -> Any:
        assert kernels
        (random,) = ctx.saved_tensors
        return gradient, kernels.drop(gradient.contiguous(), random, ctx.threshold), None, None


class Gelu(torch.autograd.Function):
    """`Kernels.gelu`. What is kept for the gradient is the derivative, so that no exponential is computed twice."""

    @staticmethod
    def forward(ctx: Any, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        assert kernels
        y, slope = kernels.gelu(x.contiguous())
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        (slope,) = ctx.saved_tensors
        found: Tensor = gradient * slope
        return found


class Turned(torch.autograd.Function):
    """`Kernels.turn`, written over its argument."""

    @staticmethod
    def forward(
        ctx: Any, packed: Float[Tensor, "n t qkv"], angles: Float[Tensor, "t e"], vectors: int
    ) -> Float[Tensor, "n t qkv"]:
        assert kernels
        ctx.mark_dirty(packed)
        ctx.angles, ctx.vectors = angles, vectors
        kernels.turn(packed, packed, angles, vectors, 1.0)
        return packed

    @staticmethod
    def backward(ctx: Any, gradient: Float[Tensor, "n t qkv"]) -> Any:
        assert kernels
        gradient = gradient.contiguous()
        found = torch.empty_like(gradient)
        kernels.turn(found, gradient, ctx.angles, ctx.vectors, -1.0)
        return found, None, None


def drop_add(
    z: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"], random: UInt8[Tensor, "*shape"], threshold: int
) -> Float[Tensor, "*shape"]:
    found: Tensor = DropAdd.apply(z, y, random, threshold)  # type: ignore[no-untyped-call]
    return found


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    found: Tensor = Gelu.apply(x)  # type: ignore[no-untyped-call]
    return found


def turned(packed: Float[Tensor, "n t qkv"], angles: Float[Tensor, "t e"], vectors: int) -> Float[Tensor, "n t qkv"]:
    """`packed` must be a result that nobody else has, and that its own gradient does not need."""
    found: Tensor = Turned.apply(packed, angles, vectors)  # type: ignore[no-untyped-call]
    return found
