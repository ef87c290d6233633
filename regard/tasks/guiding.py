"""Guided training: one head of cross-attention learns the alignments that came with the text. Garg et al. 2019."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int32
from torch import Tensor

from regard.errors import RecipeError
from regard.explaining.alignment import Step, attention_sizes, described
from regard.models.interface import SequenceToSequence
from regard.tasks.options import LossOptions


def taught_head(options: LossOptions, layers: int) -> tuple[int, int]:
    """Layer and head, counted from 1, of the weights that learn; unless the recipe says, of the last layer but one."""
    return options.guided_layer or max(layers - 1, 1), options.guided_head


def gold_weights(
    links: Sequence[Int32[np.ndarray, "_ 2"]], tokens: int, sources: int, step: Step
) -> Float[Tensor, "n t s"]:
    """Where each step of the decoder should look: evenly at the source tokens of the links of its token.

    The step that writes target token i is step i, and the one that reads it is i + 1. A step without links is zeros.
    """
    gold = torch.zeros(len(links), tokens, sources)
    for row, pairs in zip(gold, links, strict=True):
        target, source = torch.from_numpy(pairs).long().unbind(1)
        row[target + (step == "reading"), source] = 1
    return gold / gold.sum(-1, keepdim=True).clamp(min=1)


def refuse_unteachable(model: SequenceToSequence, options: LossOptions) -> None:
    """A model has the head that is to learn."""
    heads = attention_sizes(model)  # of each layer
    if not heads:
        raise RecipeError(
            f"loss.guided: {options.guided:g}, but this model has no attention that could learn alignments; "
            "set it to 0, or choose a model with attention"
        )
    layer, head = taught_head(options, len(heads))
    own = heads[min(layer, len(heads)) - 1]
    for key, asked, most in (("layer", layer, len(heads)), ("head", head, own)):
        if asked > most:
            raise RecipeError(
                f"loss.guided_{key}: {asked}, but the decoder looks at its source with {described(heads)}; "
                f"say 1 to {most}"
            )
