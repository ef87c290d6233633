"""Losses are sums with counts: add them over batches, ranks and accumulation steps, and divide once."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.native.products import mm
from regard.native.training import fits, kernels


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


def differentiate(
    logits: Float[Tensor, "rows vocab"], targets: Int[Tensor, " rows"], smoothing: float
) -> Float[Tensor, ""] | float:
    """smoothed_cross_entropy(logits, targets, ε), whose gradients p − (1−ε) onehot(target) − ε/V replace the logits."""
    if kernels and fits(logits):
        return kernels.cross_entropy(logits, targets.contiguous(), smoothing)
    logits -= logits.amax(-1, keepdim=True)
    hit, mean = logits.gather(-1, targets[:, None]), logits.mean(-1, keepdim=True)
    p = logits.exp_()
    normaliser = p.sum(-1, keepdim=True)
    total = (normaliser.log() - (1 - smoothing) * hit - smoothing * mean).sum()
    p /= normaliser
    p -= smoothing / p.shape[-1]
    p.scatter_add_(-1, targets[:, None], torch.full_like(hit, smoothing - 1))
    return total


def once(ctx: Any, scale: Float[Tensor, ""]) -> tuple[Tensor | None, ...]:
    """`ctx.gradients` times the gradient of their loss, written over them and forgotten here: no copy is made."""
    gradients: tuple[Tensor | None, ...] = ctx.gradients
    del ctx.gradients
    if scale != 1:  # whoever calls `backward` of a loss has 1
        for gradient in gradients:
            if gradient is not None:
                gradient *= scale
    return gradients


def project(
    x: Float[Tensor, "rows d"], weight: Float[Tensor, "vocab d"], bias: Float[Tensor, " vocab"] | None
) -> Float[Tensor, "rows vocab"]:
    """x Wᵀ + b, without gradients."""
    return mm(x, weight.mT) if bias is None else mm(x, weight.mT, out=bias.repeat(len(x), 1), more=True)


CHUNK = 512  # rows of logits that exist at a time: they stay in cache, and their memory is used again


class ProjectedCrossEntropy(torch.autograd.Function):
    """Σ smoothed_cross_entropy(x Wᵀ + b): the gradients are computed with the loss, chunk by chunk.

    With p = softmax(x Wᵀ + b), ∂/∂logits = p − (1−ε) onehot(target) − ε/V. No logit outlives its chunk: a whole batch
    of them would be by far the largest tensor of a step, written and read several times.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "rows d"],
        weight: Float[Tensor, "vocab d"],
        bias: Float[Tensor, " vocab"] | None,
        targets: Int[Tensor, " rows"],
        smoothing: float,
    ) -> Float[Tensor, ""]:
        dx, dw = torch.empty_like(x), torch.empty_like(weight)
        db = None if bias is None else torch.zeros_like(bias)
        total = x.new_zeros(())
        parts = zip(*(torch.split(part, CHUNK) for part in (x, targets, dx)), strict=True)
        for place, (rows, wanted, dx_rows) in enumerate(parts):
            logits = project(rows, weight, bias)
            total += differentiate(logits, wanted, smoothing)
            mm(logits, weight, out=dx_rows)
            mm(logits.mT, rows, out=dw, more=place > 0)
            if db is not None:
                db += logits.sum(0)
        ctx.gradients = dx, dw, db
        return total

    @staticmethod
    def backward(ctx: Any, scale: Float[Tensor, ""]) -> tuple[Tensor | None, ...]:
        return *once(ctx, scale), None, None


def projected_cross_entropy(
    x: Float[Tensor, "rows d"],
    weight: Float[Tensor, "vocab d"],
    bias: Float[Tensor, " vocab"] | None,
    targets: Int[Tensor, " rows"],
    smoothing: float,
) -> Float[Tensor, ""]:
    """smoothed_cross_entropy(x Wᵀ + b, targets, ε), in pieces, forwards and backwards."""
    total: Tensor = ProjectedCrossEntropy.apply(x, weight, bias, targets, smoothing)  # type: ignore[no-untyped-call]
    return total


def perplexity(mean_loss: float) -> float:
    """e^loss, capped where a float would overflow."""
    return float(torch.tensor(mean_loss, dtype=torch.float64).clamp(max=700).exp())
