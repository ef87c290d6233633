"""The network that each position goes through alone."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.initialise import xavier

Activation = Callable[[Tensor], Tensor]


class FeedForward(nn.Module):
    """W₂ a(W₁ x + b₁) + b₂, with a = ReLU in Vaswani et al. 2017, eq. 2."""

    def __init__(self, width: int, inner: int, activation: Activation) -> None:
        super().__init__()
        self.activation = activation
        self.inner, self.outer = xavier(nn.Linear(width, inner)), xavier(nn.Linear(inner, width))

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        y: Tensor = self.outer(self.activation(self.inner(x)))
        return y


class GatedFeedForward(nn.Module):
    """W₂ (a(W x + b) ⊙ (V x + c)) + b₂: SwiGLU with a = SiLU, GEGLU with GELU, ReGLU with ReLU.

    W and V are packed in one layer. Half as large again as the plain form of the same `inner`. Shazeer 2020.
    """

    def __init__(self, width: int, inner: int, activation: Activation) -> None:
        super().__init__()
        self.activation = activation
        self.inner = xavier(nn.Linear(width, 2 * inner), parts=2)
        self.outer = xavier(nn.Linear(inner, width))

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        gate, value = self.inner(x).chunk(2, -1)
        y: Tensor = self.outer(self.activation(gate) * value)
        return y
