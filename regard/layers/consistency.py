"""R-Drop: two passes over one batch, with other dropout each, must say the same. Liang et al. 2021."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.layers.loss import once, project, smoothed_cross_entropy
from regard.native.products import mm
from regard.native.training import fits, kernels

CHUNK = 256  # rows of each pass whose logits exist at a time


def divergence(first: Float[Tensor, "rows vocab"], second: Float[Tensor, "rows vocab"]) -> Float[Tensor, ""]:
    """Σ over rows of KL(p ‖ q) + KL(q ‖ p) = Σ_v (p − q)(log p − log q), with p, q = softmax of the logits."""
    p, q = first.log_softmax(-1), second.log_softmax(-1)
    return ((p.exp() - q.exp()) * (p - q)).sum()


def consistent_cross_entropy(
    first: Float[Tensor, "rows vocab"],
    second: Float[Tensor, "rows vocab"],
    targets: Int[Tensor, " rows"],
    smoothing: float,
    agreement: float,
) -> Float[Tensor, ""]:
    """½ (CE(first) + CE(second)) + α/4 Σ (KL(p ‖ q) + KL(q ‖ p)), with the smoothed cross-entropy CE.

    Half of Liang et al. 2021, eq. 4, with their α: so that it is one cross-entropy a row, and learning rates and limits
    of the gradient mean what they mean without it.
    """
    both = smoothed_cross_entropy(first, targets, smoothing) + smoothed_cross_entropy(second, targets, smoothing)
    return both / 2 + agreement / 4 * divergence(first, second)


class ProjectedConsistency(torch.autograd.Function):
    """consistent_cross_entropy(x Wᵀ + b, y Wᵀ + b), its gradients computed with it, chunk by chunk.

    With u = log p − log q, ∂/∂logits of the first pass = ½ (p − (1−ε) onehot(target) − ε/V)
    + α/4 (p (u − KL(p ‖ q)) + p − q); of the second the same with p and q exchanged. No logit outlives its chunk.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "2 rows d"],
        weight: Float[Tensor, "vocab d"],
        bias: Float[Tensor, " vocab"] | None,
        targets: Int[Tensor, " rows"],
        smoothing: float,
        agreement: float,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        dx, dw = torch.empty_like(x), torch.zeros_like(weight)
        db = None if bias is None else torch.zeros_like(bias)
        entropy, kl = x.new_zeros(()), x.new_zeros(())
        for start in range(0, len(targets), CHUNK):
            rows, wanted = x[:, start : start + CHUNK].flatten(0, 1), targets[start : start + CHUNK]
            logits = project(rows, weight, bias)
            here, apart = differentiate(logits.view(2, len(wanted), -1), wanted, smoothing, agreement)
            entropy += here
            kl += apart
            dx[:, start : start + CHUNK] = mm(logits, weight).view(2, -1, x.shape[-1])
            mm(logits.mT, rows, out=dw, more=True)
            if db is not None:
                db += logits.sum(0)
        ctx.gradients = dx, dw, db
        ctx.mark_non_differentiable(entropy)
        return entropy + agreement / 4 * kl, entropy

    @staticmethod
    def backward(ctx: Any, scale: Float[Tensor, ""], _: Any) -> tuple[Tensor | None, ...]:
        return *once(ctx, scale), None, None, None


def differentiate(
    logits: Float[Tensor, "2 rows vocab"], targets: Int[Tensor, " rows"], smoothing: float, agreement: float
) -> tuple[Float[Tensor, ""] | float, Float[Tensor, ""] | float]:
    """½ (CE(first) + CE(second)) and Σ of both KL. The gradients of consistent_cross_entropy replace the logits."""
    if kernels and fits(logits):
        return kernels.consistency(logits, targets.contiguous(), smoothing, agreement / 4)
    log_p = logits - logits.logsumexp(-1, keepdim=True)
    wanted = targets.expand(2, -1)[:, :, None]
    entropy = -((1 - smoothing) * log_p.gather(-1, wanted).sum() + smoothing * log_p.mean(-1).sum()) / 2
    p, u = log_p.exp(), log_p - log_p.flip(0)
    kl = torch.linalg.vecdot(p, u)[:, :, None]
    change = p * (0.5 + agreement / 4 * (u - kl + 1)) - agreement / 4 * p.flip(0) - smoothing / 2 / p.shape[-1]
    change.scatter_add_(-1, wanted, change.new_full(wanted.shape, (smoothing - 1) / 2))
    logits.copy_(change)
    return entropy, kl.sum()


def projected_consistency(
    x: Float[Tensor, "2 rows d"],
    weight: Float[Tensor, "vocab d"],
    bias: Float[Tensor, " vocab"] | None,
    targets: Int[Tensor, " rows"],
    smoothing: float,
    agreement: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """consistent_cross_entropy of both passes' features, in pieces, and the part of it that is cross-entropy.

    The part is for people to read: it carries no gradient.
    """
    found: tuple[Tensor, Tensor] = ProjectedConsistency.apply(  # type: ignore[no-untyped-call]
        x, weight, bias, targets, smoothing, agreement
    )
    return found
