"""The one place that asks what kind a model is."""

import torch

from regard.errors import RecipeError
from regard.models.interface import SequenceToSequence
from regard.recipe.build_convolutional import build_bytenet, build_convs2s
from regard.recipe.build_gpt import build_gpt
from regard.recipe.build_recurrent import build_recurrent
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import (
    ByteNetOptions,
    ConvS2SOptions,
    GptOptions,
    ModelOptions,
    RecurrentOptions,
    TransformerOptions,
)


def build(
    options: ModelOptions, source_vocab: int, target_vocab: int, *, shared: bool, seed: int
) -> SequenceToSequence:
    """A fresh model; its first weights are a function of the seed alone. `shared`: one vocabulary for both sides."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        match options:
            case TransformerOptions():
                return build_transformer(options, source_vocab, target_vocab, shared)
            case RecurrentOptions():
                return build_recurrent(options, source_vocab, target_vocab, shared)
            case ByteNetOptions():
                return build_bytenet(options, source_vocab, target_vocab, shared)
            case ConvS2SOptions():
                return build_convs2s(options, source_vocab, target_vocab, shared)
            case GptOptions():
                return build_gpt(options, target_vocab)
            case _:
                raise RecipeError(f"model.kind: {options.kind} reads and does not write; use it for a task that it can")
