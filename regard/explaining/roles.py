"""What a head does, told from its weights alone: how widely it looks, and whether it has one of a few known habits."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.explaining.explanation import Kind, Role

HALF = 0.5  # of its attention makes a habit: Clark et al. 2019, §3, count heads so
LIFT = 2.0  # times what even attention would give, at least: in a short text much falls anywhere by chance


def entropy(weights: Float[Tensor, "*heads q k"]) -> Float[Tensor, "*heads"]:
    """Mean over queries of −Σ w ln w: 0 for one key each, ln k for all keys alike.

    In nats. A query that sees nothing does not count.
    """
    each: Tensor = torch.special.entr(weights).sum(-1)
    seen = weights.sum(-1) > 0
    return each.masked_fill(~seen, 0.0).sum(-1) / seen.sum(-1).clamp(min=1)


def agreement(weights: Float[Tensor, "*heads q k"]) -> Float[Tensor, "*heads"]:
    """2m / (q + k), where m counts the pairs that choose each other: the key that a query gives most to, and the query
    that gives this key most.

    1 for a permutation, 2 / (q + k) where all is even or all look at one key. Weights are one direction of a word
    alignment; a head that aligns is the one whose other direction, read from the same weights, says the same.
    """
    queries, keys = weights.shape[-2:]
    chosen = weights.argmax(-2).gather(-1, weights.argmax(-1))  # the query that the key of each query has chosen
    return 2 * (chosen == torch.arange(queries)).sum(-1).to(weights) / (queries + keys)


def best_layer(texts: Sequence[Sequence[Float[Tensor, "_ _"]]]) -> int:
    """Of texts[text][layer], the layer, counted from 0, whose maps agree most on average; of equal ones the last."""
    means = [fmean(float(agreement(one)) for one in layer) for layer in zip(*texts, strict=True)]
    return max(range(len(means)), key=lambda layer: (means[layer], layer))


def share(weights: Float[Tensor, "*heads q k"], marked: Bool[Tensor, "q k"]) -> Float[Tensor, "*heads"]:
    """Mean weight on the marked places, over the queries that see something and have a mark; 0 if there is none."""
    counted = marked.any(-1) & (weights.sum(-1) > 0)
    each = (weights * marked).sum(-1)
    return (each * counted).sum(-1) / counted.sum(-1).clamp(min=1)


def even(weights: Float[Tensor, "*heads q k"]) -> Float[Tensor, "*heads q k"]:
    """The same weight on every key that a query looks at at all."""
    seen = (weights > 0).to(weights)
    return seen / seen.sum(-1, keepdim=True).clamp(min=1)


# ---------------------------------------------------------------- places
def at_distance(queries: int, keys: int, distance: int) -> Bool[Tensor, "q k"]:
    """Where key − query = distance."""
    return torch.arange(keys) - torch.arange(queries)[:, None] == distance


def along_diagonal(queries: int, keys: int) -> Bool[Tensor, "q k"]:
    """Keys at most one place from the straight line between the first corner and the last."""
    slope = (keys - 1) / max(queries - 1, 1)
    return (torch.arange(keys) - slope * torch.arange(queries)[:, None]).abs() <= 1


def habits(kind: Kind, queries: int, separators: Bool[Tensor, " k"]) -> Mapping[Role, Bool[Tensor, "q k"]]:
    """Where a head of each role would look. Nothing is next in a decoder, and neighbours mean nothing across texts."""
    keys = len(separators)
    marks = separators.expand(queries, keys)
    if kind == "cross":
        return {"diagonal": along_diagonal(queries, keys), "separator": marks}
    found: dict[Role, Tensor] = {"previous": at_distance(queries, keys, -1)}
    if kind == "encoder":
        found["next"] = at_distance(queries, keys, 1)
    return {**found, "diagonal": at_distance(queries, keys, 0), "separator": marks}


def roles(weights: Float[Tensor, "q k"], kind: Kind, separators: Bool[Tensor, " k"]) -> tuple[Role, ...]:
    """The roles whose places have at least `HALF` of the attention, and `LIFT` times that of an even head.

    previous, next: the neighbours. diagonal: the token itself; across texts, what stands equally far along (± 1).
    separator: the tokens that are marked so, start, end and punctuation. Voita et al. 2019; Clark et al. 2019.
    """
    usual = even(weights)
    return tuple(
        role
        for role, marked in habits(kind, len(weights), separators).items()
        if share(weights, marked) >= max(HALF, LIFT * float(share(usual, marked)))
    )
