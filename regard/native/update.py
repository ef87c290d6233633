"""One step of AdamW for many tensors, in one call of update.c."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.native.library import NUMBER, POINTER, REAL, library

if library:
    library.adamw.argtypes = [POINTER, NUMBER, *[REAL] * 5]
    library.adamw.restype = None


class NativeLearner(ctypes.Structure):
    """`learner` of update.c."""

    _fields_: ClassVar = [
        *((name, POINTER) for name in ("weights", "mean", "square", "gradient")),
        ("count", NUMBER),
        *((name, REAL) for name in ("left", "mean_known", "square_known")),
    ]


@dataclass(frozen=True)
class Learner:
    """A tensor with its gradient and its moments, the steps that it has taken, and its decay."""

    weights: Float[Tensor, "*shape"]
    gradient: Float[Tensor, "*shape"]
    mean: Float[Tensor, "*shape"]
    square: Float[Tensor, "*shape"]
    steps: Float[Tensor, ""]
    decay: float

    @property
    def suits(self) -> bool:
        """C knows one kind of number, and rows without gaps."""
        tensors = (self.weights, self.gradient, self.mean, self.square)
        return all(x.dtype == torch.float32 and x.is_cpu and x.is_contiguous() for x in tensors)

    def native(self, rate: float, betas: tuple[float, float]) -> NativeLearner:
        pointers = (x.data_ptr() for x in (self.weights, self.mean, self.square, self.gradient))
        known = (1 - beta ** float(self.steps) for beta in betas)
        return NativeLearner(*pointers, self.weights.numel(), 1 - rate * self.decay, *known)


def adamw(learners: Sequence[Learner], scale: float, rate: float, betas: tuple[float, float], epsilon: float) -> bool:
    """A step along the gradients times `scale`, and one more counted; False where C cannot, and nothing is changed."""
    if not library or not all(learner.suits for learner in learners):
        return False
    if learners:
        torch._foreach_add_([learner.steps for learner in learners], 1)
    array = (NativeLearner * len(learners))(*(learner.native(rate, betas) for learner in learners))
    library.adamw(ctypes.addressof(array), len(learners), scale, rate, *betas, epsilon)
    return True
