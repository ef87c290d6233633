"""What follows the gradients of a batch, for many tensors in one call of update.c: their sums, one step of AdamW."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.native.library import NUMBER, POINTER, REAL, library

if library:
    library.adamw.argtypes = [POINTER, NUMBER, *[REAL] * 5]
    library.adamw.restype = None
    library.gather.argtypes = [POINTER, NUMBER]
    library.gather.restype = ctypes.c_double

LEARNER = np.dtype(  # `learner` of update.c
    [("places", np.uint64, 4), ("count", np.int64), *((name, np.float32) for name in ("left", "mean", "square"))],
    align=True,
)


class Learner(NamedTuple):
    """A tensor with its moments, the steps that it has taken, and its decay."""

    weights: Float[Tensor, "*shape"]
    mean: Float[Tensor, "*shape"]
    square: Float[Tensor, "*shape"]
    steps: Float[Tensor, ""]
    decay: float


def suits(x: Float[Tensor, "*shape"]) -> bool:
    """C knows one kind of number, and rows without gaps."""
    return x.dtype == torch.float32 and x.is_cpu and x.is_contiguous()


class Learners:
    """Tensors that learn with AdamW, laid out for C once: from step to step only their gradients lie elsewhere."""

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.steps = [learner.steps for learner in learners]
        self.decays = np.array([learner.decay for learner in learners])
        self.able = library is not None and all(suits(x) for learner in learners for x in learner[:3])
        self.tensors = [learner[:3] for learner in learners]  # kept, so that their memory is
        self.array = np.zeros(len(learners), LEARNER)
        if learners:
            self.array["places"][:, :3] = [[x.data_ptr() for x in three] for three in self.tensors]
            self.array["count"] = [learner.weights.numel() for learner in learners]

    def take(
        self,
        gradients: Sequence[Float[Tensor, "..."]],
        scale: float,
        rate: float,
        betas: tuple[float, float],
        epsilon: float,
    ) -> bool:
        """A step along the gradients times `scale`, and one more counted; False where C cannot: nothing is changed."""
        if not library or not self.able or not all(map(suits, gradients)):
            return False
        if not gradients:
            return True
        torch._foreach_add_(self.steps, 1)
        taken, array = torch.stack(self.steps).double().numpy(), self.array
        array["places"][:, 3] = [x.data_ptr() for x in gradients]
        array["left"] = 1 - rate * self.decays
        array["mean"], array["square"] = (1 - beta**taken for beta in betas)
        library.adamw(array.ctypes.data, len(array), scale, rate, *betas, epsilon)
        return True


def gather(to: Sequence[Float[Tensor, "..."]], of: Sequence[Float[Tensor, "..."] | None]) -> float | None:
    """Adds the second gradients to the first, where there are any: Σ of the squares then; none where C cannot."""
    if not library or not all(map(suits, to)) or not all(x is None or suits(x) for x in of):
        return None
    places = [(x.data_ptr(), 0 if y is None else y.data_ptr(), x.numel()) for x, y in zip(to, of, strict=True)]
    array = np.array(places, np.int64)
    found: float = library.gather(array.ctypes.data, len(places))
    return found
