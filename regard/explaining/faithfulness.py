"""How faithful an explanation is: does the output follow the places that it calls important?

An explanation orders places, the most important first. Hidden in this order, they should take the output down fast;
shown in this order, they should bring it up fast. Petsiuk et al. 2018, §4.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.explaining.rise import Score

STEPS = 50  # points of a curve, less one


@dataclass(frozen=True)
class Faithfulness:
    """Both areas of one explanation of one output: the smaller deletion and the larger insertion, the better."""

    deletion: float
    insertion: float


def removals(order: Int[Tensor, " places"], steps: int) -> Float[Tensor, "points places"]:
    """Masks that keep all places, then hide the first ones of the order, in equal steps, until none is kept."""
    places = len(order)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(places)
    hidden: Tensor = torch.linspace(0, places, steps + 1, dtype=torch.float64).round().long()
    hidden = torch.unique(hidden)
    return (rank >= hidden[:, None]).float()


def deletion(score: Score, order: Int[Tensor, " places"], steps: int = STEPS) -> Float[Tensor, " outputs"]:
    """The mean of each output over the share of places hidden, the first of the order first: low is faithful."""
    kept = removals(order, steps)
    return torch.trapezoid(score(kept).double(), 1 - kept.double().mean(1), dim=0)


def insertion(score: Score, order: Int[Tensor, " places"], steps: int = STEPS) -> Float[Tensor, " outputs"]:
    """The mean of each output over the share of places shown, the first of the order first: high is faithful."""
    kept = 1 - removals(order, steps)
    return torch.trapezoid(score(kept).double(), kept.double().mean(1), dim=0)


def of_own_orders(score: Score, orders: Int[Tensor, "outputs places"]) -> Faithfulness:
    """The mean over outputs of both areas, each by an order of its own: places go, and come, one by one."""
    outputs, places = orders.shape
    kept, each = torch.cat([removals(order, places) for order in orders]), torch.arange(outputs)

    def area(masks: Float[Tensor, "points places"]) -> float:
        values = score(masks).double().view(outputs, places + 1, outputs)
        return float(torch.trapezoid(values[each, :, each], dx=1 / places).mean())

    return Faithfulness(deletion=area(kept), insertion=area(1 - kept))
