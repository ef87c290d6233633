"""Muon: momentum whose every matrix is made orthogonal before it is applied. For small data in little time."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.patches import GridPositions
from regard.native.products import mm
from regard.training.adam import Adam

MOMENTUM = 0.95
TALL = 8  # sides in a greater ratio make a table of tokens, not a map between layers
QUINTIC = (3.4445, -4.7750, 2.0315)  # coefficients that pull singular values towards 1 fastest; Jordan et al. 2024


def quintic(gram: Float[Tensor, "m m"]) -> Float[Tensor, "m m"]:
    """p(G) = a + b G + c G²."""
    a, b, c = QUINTIC
    found = mm(c * gram, gram, out=b * gram, more=True)
    found.diagonal().add_(a)
    return found


def orthogonal(matrix: Float[Tensor, "m n"], rounds: int = 5) -> Float[Tensor, "m n"]:
    """U Vᵀ of the matrix U S Vᵀ, nearly: X ← p(X Xᵀ) X with p(G) = a + b G + c G² brings every singular value near 1.

    A round makes p(G) G p(G) of G = X Xᵀ, and all p(G) commute: rounds go on in the small square G, and X is met twice.
    For X four times as wide as high this takes 0.57 of the time that X itself in every round would take, for a square
    one 1.25. In float32: torch.optim.Muon rounds to bfloat16, which a CPU without its instructions computes slowly.
    """
    x = matrix / (matrix.norm() + 1e-7)
    wide: Tensor = x if x.shape[0] <= x.shape[1] else x.mT  # the product X Xᵀ is then the smaller one
    gram = mm(wide, wide.mT)
    factor = product = quintic(gram)
    for _ in range(rounds - 1):
        gram = mm(factor, mm(gram, factor))
        factor = quintic(gram)
        product = mm(factor, product)
    wide = mm(product, wide)
    return wide if x.shape[0] <= x.shape[1] else wide.mT


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """What Muon is meant for: the maps between layers. Embeddings, output tables, biases and norms are not."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    tables |= {id(module.table) for module in model.modules() if isinstance(module, GridPositions)}
    return [
        p
        for p in model.parameters()
        if p.requires_grad and p.ndim == 2 and id(p) not in tables and max(p.shape) <= TALL * min(p.shape)
    ]


class Muon(Adam):
    """m ← μ m + (1−μ) g;  w ← (1 − η λ) w − 0.2 η √max(rows, columns) · orthogonal((1−μ) g + μ m).

    The factor gives an update the size of Adam's. The rest, which AdamW trains, learns (and decays) at `pace` times
    the rate of the matrices. Jordan et al. 2024; Liu et al. 2025, eq. 4.
    """

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        rest: list[dict[str, Any]],
        decay: float,
        adam: dict[str, Any],
        pace: float,
    ) -> None:
        super().__init__(rest, **adam)
        self.matrices, self.decay, self.pace = matrices, decay, pace

    @torch.no_grad()
    def take(self, rate: float, scale: float) -> None:
        super().take(self.pace * rate, scale)
        for p in self.matrices:
            if p.grad is None:
                continue
            p.grad *= scale
            momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
            momentum.lerp_(p.grad, 1 - MOMENTUM)
            update = orthogonal(p.grad.lerp(momentum, MOMENTUM))
            p.mul_(1 - rate * self.decay).add_(update, alpha=-0.2 * rate * max(p.shape) ** 0.5)

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        for p in self.matrices:
            p.grad = None
