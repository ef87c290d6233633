"""Weights for inference alone: transposed, without gradients, and applied without copies."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.feedforward import Activation
from regard.layers.residual import PostNorm, PreNorm

IN_PLACE: dict[Activation, Activation] = {F.relu: torch.relu_}  # what it is applied to is read by nobody else


@dataclass(frozen=True)
class Affine:
    """x W + b, with W as one row of x reads it."""

    weight: Float[Tensor, "d e"]
    bias: Float[Tensor, " e"]

    @classmethod
    def of(cls, linear: nn.Linear) -> "Affine":
        return cls(linear.weight.detach().mT.contiguous(), linear.bias.detach())

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        return torch.addmm(self.bias, x, self.weight)

    def onto(self, total: Float[Tensor, "n e"], x: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        """total + x W + b, written over total: no copy of anything."""
        return total.addmm_(x, self.weight).add_(self.bias)


@dataclass(frozen=True)
class Norm:
    """LN(x) with these weights."""

    gain: Float[Tensor, " d"]
    shift: Float[Tensor, " d"]
    epsilon: float

    @classmethod
    def of(cls, around: PreNorm | PostNorm) -> "Norm":
        norm: Any = around.norm
        return cls(norm.gain.detach(), norm.shift.detach(), norm.epsilon)

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        return torch.layer_norm(x, self.gain.shape, self.gain, self.shift, self.epsilon)
