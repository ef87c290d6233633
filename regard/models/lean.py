"""Weights for inference alone: transposed, without gradients, and applied without copies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.feedforward import FeedForward
from regard.layers.residual import PostNorm, PreNorm
from regard.native.inference import Native, Panels


@dataclass(frozen=True)
class Affine:
    """x W + b, with W packed."""

    panels: Panels
    native: Native

    @classmethod
    def of(cls, linear: nn.Linear, native: Native) -> "Affine":
        """A layer without a bias has one of zeros here: inference.c always adds one."""
        bias: Tensor | None = linear.bias
        return cls(Panels(linear.weight.detach().mT, None if bias is None else bias.detach()), native)

    def __call__(self, x: Float[Tensor, "n d"], least: float = -math.inf) -> Float[Tensor, "n e"]:
        """max(x W + b, least)."""
        return self.native.product(x, self.panels, least)


@dataclass(frozen=True)
class Norm:
    """LN(x) with these weights."""

    gain: Float[Tensor, " d"]
    shift: Float[Tensor, " d"]
    epsilon: float

    @classmethod
    def of(cls, norm: Any) -> "Norm":
        return cls(norm.gain.detach(), norm.shift.detach(), norm.epsilon)

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        return torch.layer_norm(x, self.gain.shape, self.gain, self.shift, self.epsilon)


class Joint:
    """Where one sub-layer ends and the next begins: its result is added to the stream x, and a norm follows.

    The norm is the next sub-layer's own where norms come before (`pre`); else it ends this one, and x is its result.
    """

    def __init__(self, last: Affine, norm: Norm, pre: bool) -> None:
        self.last, self.norm, self.pre = last, norm, pre

    def __call__(self, x: Float[Tensor, "n d"], found: Float[Tensor, "n e"]) -> Float[Tensor, "n d"]:
        """What the next sub-layer reads; x is written over."""
        native, panels, norm = self.last.native, self.last.panels, self.norm
        native.add_product(x, found, panels)
        out = torch.empty_like(x) if self.pre else x
        native.norm(x, panels.bias[: panels.columns], norm.gain, norm.shift, norm.epsilon, out)
        return out


def joints(
    lasts: Sequence[nn.Linear], arounds: Sequence[PreNorm | PostNorm], final: nn.Module, native: Native
) -> tuple[Norm | None, list[Joint]]:
    """The joints behind these sub-layers, and the norm before the first of them, if there is one."""
    norms, pre = [Norm.of(around.norm) for around in arounds], isinstance(arounds[0], PreNorm)
    behind = [*norms[1:], Norm.of(final)] if pre else norms
    found = [Joint(Affine.of(last, native), norm, pre) for last, norm in zip(lasts, behind, strict=True)]
    return norms[0] if pre else None, found


class Inner:
    """The first half of a feed-forward layer: max(0, x W + b), or another activation."""

    def __init__(self, feedforward: FeedForward, native: Native) -> None:
        self.affine, self.activation = Affine.of(feedforward.inner, native), feedforward.activation

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        return self.affine(x, 0.0) if self.activation is F.relu else self.activation(self.affine(x))
