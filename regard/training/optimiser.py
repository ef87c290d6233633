"""The optimiser of a recipe, in parts for several threads; what it remembers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ModelFormatError
from regard.training.adam import Adam
from regard.training.crew import deal
from regard.training.muon import Muon, hidden_matrices
from regard.training.options import TrainingOptions

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def build_optimisers(model: nn.Module, options: TrainingOptions, parts: int) -> list[Adam]:
    """AdamW (Loshchilov & Hutter 2019), or Muon for the matrices and AdamW for the rest: one for each part of them.

    Parts have about as much to do; there are fewer where there are fewer tensors.
    """
    matrices = hidden_matrices(model) if options.optimiser == "muon" else []
    hidden = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in hidden]
    parts = max(1, min(parts, len(rest)))
    hands = zip(deal(matrices, parts), deal(rest, parts), strict=True)
    return [optimiser_of([matrices[i] for i in some], [rest[i] for i in others], options) for some, others in hands]


def optimiser_of(matrices: list[nn.Parameter], trained: list[nn.Parameter], options: TrainingOptions) -> Adam:
    """Biases, norms and other tensors of one dimension do not decay."""
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    adam: dict[str, Any] = {"lr": options.learning_rate, "betas": options.betas, "eps": options.epsilon, "fused": True}
    if options.optimiser != "muon":
        return Adam(groups, **adam)
    return Muon(matrices, groups, options.weight_decay, adam, options.rest_rate)


def held(optimiser: Adam) -> list[nn.Parameter]:
    """The parameters that it trains."""
    rest = [p for group in optimiser.param_groups for p in group["params"]]
    return [*optimiser.matrices, *rest] if isinstance(optimiser, Muon) else rest


def moments(model: nn.Module, optimisers: Sequence[Adam]) -> dict[str, Tensor]:
    """What the optimisers remember, by parameter name: `NAME.exp_avg`, `NAME.step`, `NAME.momentum` …"""
    known = {p: kinds for optimiser in optimisers for p, kinds in optimiser.state.items()}
    return {
        f"{name}.{kind}": tensor
        for name, p in model.named_parameters()
        if p in known
        for kind, tensor in known[p].items()
    }


def restore_moments(model: nn.Module, optimisers: Sequence[Adam], found: Mapping[str, Tensor], where: Path) -> None:
    """Puts back what `moments` gave; a parameter that had no gradient yet has nothing."""
    left = dict(found)
    owners = {p: optimiser for optimiser in optimisers for p in held(optimiser)}
    matrices = {id(p) for optimiser in optimisers if isinstance(optimiser, Muon) for p in optimiser.matrices}
    for name, p in model.named_parameters():
        if p not in owners:
            continue
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
        owners[p].remember(p, mine)
    if left:
        raise ModelFormatError(f"{where}: unknown tensor {min(left)!r}; expected a file of the same recipe")
