"""The optimiser of a recipe, what it remembers, and gradients that are divided and clipped in one pass."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import AdamW

from regard.errors import ModelFormatError
from regard.training.muon import Each, Muon, hidden_matrices, one_by_one
from regard.training.options import TrainingOptions

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def build_optimiser(model: nn.Module, options: TrainingOptions, each: Each = one_by_one) -> AdamW:
    """AdamW (Loshchilov & Hutter 2019), or Muon for the matrices and AdamW for the rest.

    Biases, norms and other tensors of one dimension do not decay. `each` is how Muon goes through its matrices.
    """
    matrices = hidden_matrices(model) if options.optimiser == "muon" else []
    others = {id(p) for p in matrices}
    trained = [p for p in model.parameters() if p.requires_grad and id(p) not in others]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    adam: dict[str, Any] = {"lr": options.learning_rate, "betas": options.betas, "eps": options.epsilon, "fused": True}
    return Muon(matrices, groups, options.weight_decay, adam, each) if matrices else AdamW(groups, **adam)


@torch.no_grad()
def settle_gradients(parameters: Iterable[nn.Parameter], *, units: int, clip: float) -> Float[Tensor, ""]:
    """g ← g/u · min(1, clip / ‖g/u‖), in place; returns ‖g/u‖ over all parameters, before clipping.

    Gradients arrive as sums over `units`, so division and clipping are one pass. clip = 0 does not clip.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm: Tensor = torch.nn.utils.get_total_norm(gradients, foreach=True) / units
    scale = torch.clamp(clip / (norm + 1e-6), max=1.0) / units if clip else torch.full_like(norm, 1 / units)
    torch._foreach_mul_(gradients, scale)
    return norm


def moments(model: nn.Module, optimiser: AdamW) -> dict[str, Tensor]:
    """What the optimiser remembers, by parameter name: `NAME.exp_avg`, `NAME.step`, `NAME.momentum` …"""
    return {
        f"{name}.{kind}": tensor
        for name, p in model.named_parameters()
        if p in optimiser.state
        for kind, tensor in optimiser.state[p].items()
    }


def restore_moments(model: nn.Module, optimiser: AdamW, found: Mapping[str, Tensor], where: Path) -> None:
    """Puts back what `moments` gave; a parameter that had no gradient yet has nothing."""
    left = dict(found)
    matrices = {id(p) for p in optimiser.matrices} if isinstance(optimiser, Muon) else set()
    for name, p in model.named_parameters():
        kinds = ("momentum",) if id(p) in matrices else MOMENTS
        mine = {kind: left.pop(f"{name}.{kind}") for kind in kinds if f"{name}.{kind}" in left}
        if not mine:
            continue
        for kind in kinds:
            shape = torch.Size([]) if kind == "step" else p.shape
            if kind not in mine or mine[kind].shape != shape:
                raise ModelFormatError(
                    f"{where}: tensor '{name}.{kind}' is missing or misshapen; expected a file of the same recipe"
                )
        optimiser.state[p] = mine
    if left:
        raise ModelFormatError(f"{where}: unknown tensor {min(left)!r}; expected a file of the same recipe")
