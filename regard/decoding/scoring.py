"""How probable given targets are: the search's own scores, for sequences that it did not choose."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.models.interface import Decoder, Memory

POSITIONS = 1024  # through the output layer at once: a whole batch of logits would not stay in cache


@torch.no_grad()
def score(
    decoder: Decoder[Any], memory: Memory, targets: Int[Tensor, "n t"], mask: Bool[Tensor, "n t"], *, bos: int
) -> Float[Tensor, "n t"]:
    """log p(target_t | target_<t, source), and 0 where the mask hides the target.

    `targets` hold the end token if its probability should count, and no start token. The caller puts the model in eval
    mode.
    """
    inputs = torch.cat([torch.full_like(targets[:, :1], bos), targets[:, :-1]], dim=1)
    features, _ = decoder.features(inputs, decoder.begin(memory))
    found = log_probabilities(decoder.output, features[mask], targets[mask])  # (n, t, d) → (positions, d)
    return found.new_zeros(targets.shape).masked_scatter(mask, found)


def log_probabilities(
    output: Callable[[Tensor], Tensor], features: Float[Tensor, "positions d"], ids: Int[Tensor, " positions"]
) -> Float[Tensor, " positions"]:
    """log p of one id at each position, by the output layer of a decoder."""
    parts = [
        output(part).log_softmax(-1).gather(-1, wanted[:, None])[:, 0]
        for part, wanted in zip(torch.split(features, POSITIONS), torch.split(ids, POSITIONS), strict=True)
    ]
    return torch.cat(parts)
