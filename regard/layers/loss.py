"""Losses are sums with counts: add them over batches, ranks and accumulation steps, and divide once."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Loss:
    """A sum over `units` tokens (or sentences); `mean` is the only place that divides."""

    total: Float[Tensor, ""]
    units: int

    def __add__(self, other: "Loss") -> "Loss":
        return Loss(self.total + other.total, self.units + other.units)

    @property
    def mean(self) -> Float[Tensor, ""]:
        return self.total / self.units


def smoothed_cross_entropy(
    logits: Float[Tensor, "rows vocab"], targets: Int[Tensor, " rows"], smoothing: float
) -> Float[Tensor, ""]:
    """Σ over rows of −(1−ε) log p(target) − ε/V Σ_v log p(v), with p = softmax(logits).

    Szegedy et al. 2016, §7. ε = 0 is the ordinary cross-entropy.
    """
    normaliser = logits.logsumexp(-1)
    hit = logits.gather(-1, targets[:, None])[:, 0]
    return (normaliser - (1 - smoothing) * hit - smoothing * logits.mean(-1)).sum()


def perplexity(mean_loss: float) -> float:
    """e^loss, capped where a float would overflow."""
    return float(torch.tensor(mean_loss, dtype=torch.float64).clamp(max=700).exp())
