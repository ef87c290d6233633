"""The network that each position goes through alone."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.initialise import xavier
from regard.native import training as native

Activation = Callable[[Tensor], Tensor]


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x Φ(x), with Φ of the normal distribution. Hendrycks & Gimpel 2016, eq. 1."""
    return native.gelu(x) if x.requires_grad and native.fits(x) else F.gelu(x)


def gelu_tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """½ x (1 + tanh(√(2/π) (x + 0.044715 x³))): near GELU, and what GPT-2 and T5 were trained with.

    Hendrycks & Gimpel 2016, §2.
    """
    return F.gelu(x, approximate="tanh")


def feed_forward(
    x: Float[Tensor, "*rows d"],
    w1: Float[Tensor, "inner d"],
    b1: Float[Tensor, " inner"] | None,
    w2: Float[Tensor, "d inner"],
    b2: Float[Tensor, " d"] | None,
    activation: Activation,
) -> Float[Tensor, "*rows d"]:
    """W₂ a(W₁ x + b₁) + b₂, with a = ReLU in Vaswani et al. 2017, eq. 2; a bias of none is left out."""
    return F.linear(activation(F.linear(x, w1, b1)), w2, b2)


def gated_feed_forward(
    x: Float[Tensor, "*rows d"],
    wv: Float[Tensor, "both d"],
    bc: Float[Tensor, " both"] | None,
    w2: Float[Tensor, "d inner"],
    b2: Float[Tensor, " d"] | None,
    activation: Activation,
) -> Float[Tensor, "*rows d"]:
    """W₂ (a(W x + b) ⊙ (V x + c)) + b₂, with W above V in one matrix and b above c in one vector. Shazeer 2020."""
    gate, value = F.linear(x, wv, bc).chunk(2, -1)
    return F.linear(activation(gate) * value, w2, b2)


class FeedForward(nn.Module):
    """Owns the weights of `feed_forward`."""

    def __init__(self, width: int, inner: int, activation: Activation, bias: bool = True) -> None:
        super().__init__()
        self.activation = activation
        self.inner = xavier(nn.Linear(width, inner, bias))
        self.outer = xavier(nn.Linear(inner, width, bias))

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        inner, outer = self.inner, self.outer
        return feed_forward(x, inner.weight, inner.bias, outer.weight, outer.bias, self.activation)


class GatedFeedForward(nn.Module):
    """Owns the weights of `gated_feed_forward`: SwiGLU with a = SiLU, GEGLU with GELU, ReGLU with ReLU.

    Half as large again as the plain form of the same `inner`.
    """

    def __init__(self, width: int, inner: int, activation: Activation, bias: bool = True) -> None:
        super().__init__()
        self.activation = activation
        self.inner = xavier(nn.Linear(width, 2 * inner, bias), parts=2)
        self.outer = xavier(nn.Linear(inner, width, bias))

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        inner, outer = self.inner, self.outer
        return gated_feed_forward(x, inner.weight, inner.bias, outer.weight, outer.bias, self.activation)
