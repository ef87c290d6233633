"""Who sees whom. Masks are bool and True means visible.

In self-attention the last query stands at the last key: query i is at key position i + keys − queries.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding(lengths: Int[Tensor, " n"], positions: int) -> Bool[Tensor, "n k"]:
    """Visible where position < length: padding is on the right."""
    return torch.arange(positions, device=lengths.device) < lengths[:, None]


def offsets(queries: int, keys: int, device: torch.device | None = None) -> Int[Tensor, "q k"]:
    """Position of key j minus position of query i: negative is the past."""
    here = torch.arange(keys - queries, keys, device=device)
    return torch.arange(keys, device=device) - here[:, None]


def causal(queries: int, keys: int, device: torch.device | None = None) -> Bool[Tensor, "q k"]:
    """A query sees itself and the past."""
    return offsets(queries, keys, device) <= 0


def window(queries: int, keys: int, behind: int, ahead: int, device: torch.device | None = None) -> Bool[Tensor, "q k"]:
    """A query sees itself, `behind` positions before it and `ahead` after it."""
    distance = offsets(queries, keys, device)
    return (distance >= -behind) & (distance <= ahead)


def both(first: Bool[Tensor, "..."] | None, second: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """Visible where both masks say so; None hides nothing."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def over_keys(mask: Bool[Tensor, "n k"] | None) -> Bool[Tensor, "n 1 1 k"] | None:
    """The same keys hidden from every head and query."""
    return None if mask is None else mask[:, None, None]
