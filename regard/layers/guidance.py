"""Guided attention: a head learns from given alignments where to look. Garg et al. 2019."""

import torch
from jaxtyping import Float
from torch import Tensor

SMALLEST = 1e-9  # added to a weight: of one that is 0 the logarithm has no gradient


def alignment_cross_entropy(weights: Float[Tensor, "m t s"], gold: Float[Tensor, "n t s"]) -> Float[Tensor, ""]:
    """−Σ over n, t, s of gold · log weights; the mean of the passes where each row of gold was gone through m/n times.

    Garg et al. 2019, as a sum. Rows of gold sum to 1, or to 0 where nothing is known of a token.
    """
    passes = weights.view(-1, *gold.shape)
    return -(gold * torch.log(passes + SMALLEST).mean(0)).sum()
