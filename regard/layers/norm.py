"""Normalising each position by its own mean and spread."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

EPSILON = 1e-5


def layer_norm(
    x: Float[Tensor, "*rows d"], gain: Float[Tensor, " d"], shift: Float[Tensor, " d"], epsilon: float
) -> Float[Tensor, "*rows d"]:
    """γ (x − μ) / √(σ² + ε) + β, with the mean and the variance over the d numbers of one position.

    Ba et al. 2016. Unlike batch norm, no row sees another, so that training and inference are the same function.
    """
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (centred.square().mean(-1, keepdim=True) + epsilon).sqrt() + shift


def layer_norm_outside(
    x: Float[Tensor, "*rows d"], gain: Float[Tensor, " d"], shift: Float[Tensor, " d"], epsilon: float
) -> Float[Tensor, "*rows d"]:
    """γ (x − μ) / (σ + ε) + β: the other written form, ε outside the root."""
    centred = x - x.mean(-1, keepdim=True)
    # A norm has gradient 0 where a root has none: a constant row stays finite backwards.
    spread: Tensor = torch.linalg.vector_norm(centred, dim=-1, keepdim=True) / x.shape[-1] ** 0.5
    return gain * centred / (spread + epsilon) + shift


def rms_norm(x: Float[Tensor, "*rows d"], gain: Float[Tensor, " d"], epsilon: float) -> Float[Tensor, "*rows d"]:
    """γ x / √(mean(x²) + ε): no mean, no shift. Zhang & Sennrich 2019."""
    return gain * x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt()


class LayerNorm(nn.Module):
    """`layer_norm` with trained γ and β, by torch's fused kernel."""

    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        return F.layer_norm(x, self.gain.shape, self.gain, self.shift, self.epsilon)


class LayerNormOutside(nn.Module):
    """`layer_norm_outside` with trained γ and β."""

    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        return layer_norm_outside(x, self.gain, self.shift, self.epsilon)


class RMSNorm(nn.Module):
    """`rms_norm` with trained γ."""

    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        return rms_norm(x, self.gain, self.epsilon)
