"""A sparse mixture of experts: many networks, of which each position goes through a few. Shazeer et al. 2017."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.dropout import Drawing

LEAST_NOISE = 1e-2  # the chance to be chosen divides by the noise, whose gradient must stay finite


@dataclass(frozen=True)
class Gating:
    """Which experts each row goes to and with what weights, and the scores that this came from."""

    scores: Float[Tensor, "rows experts"]  # x W_g
    spread: Float[Tensor, "rows experts"]  # the size of the noise
    noisy: Float[Tensor, "rows experts"]  # scores + noise; the scores themselves outside training
    chosen: Int[Tensor, "rows k"]
    weights: Float[Tensor, "rows k"]


def choose(scores: Float[Tensor, "rows experts"], active: int) -> tuple[Int[Tensor, "rows k"], Float[Tensor, "rows k"]]:
    """The k experts of the highest scores, best first, and the softmax over these k scores alone. Eq. 3 and 5 there."""
    highest, chosen = scores.topk(active, -1)
    return chosen, highest.softmax(-1)


def mix(
    x: Float[Tensor, "rows d"],
    chosen: Int[Tensor, "rows k"],
    weights: Float[Tensor, "rows k"],
    experts: Sequence[Callable[[Tensor], Tensor]],
) -> Float[Tensor, "rows e"]:
    """y = Σ_i G(x)_i E_i(x) over the chosen i, each expert called once with all of its rows. Eq. 1 there."""
    order = chosen.flatten().argsort(stable=True)  # rows·k places, expert by expert
    counts = chosen.flatten().bincount(minlength=len(experts)).tolist()
    parts = torch.split(x[order // chosen.shape[1]], counts)
    outputs = torch.cat([expert(part) for expert, part in zip(experts, parts, strict=True)])
    back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    return (outputs[back].view(*chosen.shape, -1) * weights[..., None]).sum(1)  # (rows·k, e) → (rows, e)


def importance(gating: Gating) -> Float[Tensor, " experts"]:
    """Σ over rows of G(x): the weight that each expert has in all. Eq. 6 there."""
    spread_out = torch.zeros_like(gating.scores).scatter(-1, gating.chosen, gating.weights)
    return spread_out.sum(0)


def load(gating: Gating) -> Float[Tensor, " experts"]:
    """Σ over rows of Φ((x W_g − threshold) / spread): how many rows each expert gets, made smooth. Appendix A there.

    The threshold of an expert is the k-th highest noisy score of the others: Φ is the chance to be chosen if its own
    noise were drawn again.
    """
    active = gating.chosen.shape[-1]
    highest = gating.noisy.topk(active + 1, -1).values
    inside, outside = highest[:, active:], highest[:, active - 1 : active]
    threshold = torch.where(gating.noisy > inside, inside, outside)
    chances: Tensor = torch.special.ndtr((gating.scores - threshold) / gating.spread)
    return chances.sum(0)


def squared_variation(x: Float[Tensor, " experts"]) -> Float[Tensor, ""]:
    """CV² = variance / mean²: 0 where all are equal, and the same for any multiple of x."""
    return x.var(correction=0) / (x.mean().square() + 1e-10)


class Gate(Drawing):
    """H(x) = x W_g + ε ⊙ (softplus(x W_noise) + δ), ε ~ N(0, 1) in training and 0 otherwise; then `choose`. Eq. 4.

    Both matrices begin at 0, so that at first chance alone decides and all experts get the same.
    """

    def __init__(self, width: int, experts: int, active: int, balance: float) -> None:
        super().__init__()
        self.active, self.balance = active, balance
        self.score, self.noise = nn.Linear(width, experts, bias=False), nn.Linear(width, experts, bias=False)
        nn.init.zeros_(self.score.weight)
        nn.init.zeros_(self.noise.weight)

    def forward(self, x: Float[Tensor, "rows d"]) -> Gating:
        scores, spread = self.score(x), F.softplus(self.noise(x)) + LEAST_NOISE
        noise = scores.new_empty(scores.shape).normal_(generator=self.generator) if self.training else 0.0
        noisy = scores + spread * noise
        return Gating(scores, spread, noisy, *choose(noisy, self.active))

    def penalty(self, gating: Gating) -> Float[Tensor, ""]:
        """w (CV²(importance) + CV²(load)): what keeps a few experts from getting everything. Eq. 7 and 11 there."""
        return self.balance * (squared_variation(importance(gating)) + squared_variation(load(gating)))


class MixtureOfExperts(nn.Module):
    """`mix` by a gate: as wide as its experts, of which only a few are computed for each position.

    Positions that are only padding choose too, and count in the gate's penalty.
    """

    def __init__(self, gate: Gate, experts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.gate, self.experts = gate, nn.ModuleList(experts)

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        rows = x.reshape(-1, x.shape[-1])
        gating = self.gate(rows)
        return mix(rows, gating.chosen, gating.weights, list(self.experts)).reshape(x.shape)
