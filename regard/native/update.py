"""One step of AdamW for many tensors, in one call of update.c."""

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

LEARNER = np.dtype(  # `learner` of update.c
    [("places", np.uint64, 4), ("count", np.int64), *((name, np.float32) for name in ("left", "mean", "square"))],
    align=True,
)


class Learner(NamedTuple):
    """A tensor with its moments and its gradient, the steps that it has taken, and its decay."""

    weights: Float[Tensor, "*shape"]
    mean: Float[Tensor, "*shape"]
    square: Float[Tensor, "*shape"]
    gradient: Float[Tensor, "*shape"]
    steps: Float[Tensor, ""]
    decay: float


def suits(x: Float[Tensor, "*shape"]) -> bool:
    """C knows one kind of number, and rows without gaps."""
    return x.dtype == torch.float32 and x.is_cpu and x.is_contiguous()


def adamw(learners: Sequence[Learner], scale: float, rate: float, betas: tuple[float, float], epsilon: float) -> bool:
    """A step along the gradients times `scale`, and one more counted; False where C cannot, and nothing is changed."""
    if not library or not all(suits(x) for learner in learners for x in learner[:4]):
        return False
    if not learners:
        return True
    steps = [learner.steps for learner in learners]
    torch._foreach_add_(steps, 1)
    taken = torch.stack(steps).double().numpy()
    array = np.empty(len(learners), LEARNER)
    array["places"] = [[x.data_ptr() for x in learner[:4]] for learner in learners]
    array["count"] = [learner.weights.numel() for learner in learners]
    array["left"] = [1 - rate * learner.decay for learner in learners]
    array["mean"], array["square"] = (1 - beta**taken for beta in betas)
    library.adamw(array.ctypes.data, len(learners), scale, rate, *betas, epsilon)
    return True
