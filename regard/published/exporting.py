"""A model of ours as the folder of a published checkpoint, which the transformers library reads."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RecipeError
from regard.files import refuse_occupied, write_atomically, write_folder
from regard.published import configs, gpt2, marian, t5
from regard.published.checkpoint import CONFIG, WEIGHTS
from regard.published.families import GENERATION, order_of
from regard.published.layout import Layout, Made, to_theirs
from regard.published.vocabulary import Order
from regard.recipe.folder import ModelFolder, open_finished, read_model
from regard.recipe.models import GptOptions, ModelOptions, TransformerOptions
from regard.recipe.recipe import Recipe
from regard.tasks.translate import Vocabularies
from regard.text.byte_level import ByteLevel
from regard.text.pieces import SentencePieces
from regard.text.publish import write_byte_level, write_marian, write_t5
from regard.training.tensors import weights, write_tensors

BIAS = "decoder.output.bias"
ORIGIN = {"format": "pt"}  # without this note in the weights their library does not read them


# ---------------------------------------------------------------- one entry for each family
@dataclass(frozen=True)
class Publisher:
    """What an export asks of a family."""

    name: str
    refuse: Callable[[Any], None]  # of a model section: RecipeError names what the family cannot have
    config: Callable[[Recipe, Order], dict[str, Any]]
    layout: Callable[[Recipe, Order], Layout]
    words: Callable[[Vocabularies, Path], bool]  # writes the tokeniser's files; false: the family has no such one


def gpt2_layout(recipe: Recipe, order: Order) -> Layout:
    sizes = gpt2.sizes(configs.gpt2_config(recipe, order))
    return gpt2.layout(sizes, order, gpt2.Held("transformer.", head=not sizes.tied))


def gpt2_words(vocabularies: Vocabularies, folder: Path) -> bool:
    tokeniser = vocabularies.target
    if not isinstance(tokeniser, ByteLevel):
        return False
    write_byte_level(tokeniser, folder)
    return True


def t5_layout(recipe: Recipe, order: Order) -> Layout:
    assert isinstance(recipe.model, TransformerOptions)
    return t5.layout(recipe.model, order)


def t5_words(vocabularies: Vocabularies, folder: Path) -> bool:
    tokeniser = vocabularies.target
    if not isinstance(tokeniser, SentencePieces):
        return False
    write_t5(tokeniser, folder)
    return True


def marian_layout(recipe: Recipe, order: Order) -> Layout:
    assert isinstance(recipe.model, TransformerOptions)
    return marian.layout(recipe.model, order)


def marian_words(vocabularies: Vocabularies, folder: Path) -> bool:
    """T5's tokeniser would be one for both sides."""
    source, target = vocabularies.source, vocabularies.target
    if vocabularies.shared or not isinstance(source, SentencePieces) or not isinstance(target, SentencePieces):
        return False
    write_marian(source, target, folder)
    return True


GPT2 = Publisher("GPT-2", configs.refuse_gpt2, configs.gpt2_config, gpt2_layout, gpt2_words)
T5 = Publisher("T5", configs.refuse_t5, configs.t5_config, t5_layout, t5_words)
MARIAN = Publisher("Marian", configs.refuse_marian, configs.marian_config, marian_layout, marian_words)


def publisher(options: ModelOptions) -> Publisher:
    """The published family that is nearest to a model."""
    match options:
        case GptOptions():
            return GPT2
        case TransformerOptions(positions="relative"):
            return T5
        case TransformerOptions():
            return MARIAN
        case _:
            raise RecipeError(
                f"model.kind: found {options.kind}, of which there is no published family; expected gpt or transformer"
            )


# ---------------------------------------------------------------- the export
@dataclass(frozen=True)
class Published:
    """What was written: for which family, and whether its tokeniser could come along."""

    family: str
    tokeniser: bool


def export_transformers(model: Path, out: Path) -> Published:
    """Writes the folder `out`; what the published family cannot have is refused by name, and nothing is written."""
    refuse_occupied(out)
    recipe = open_finished(model)
    entry = publisher(recipe.model)
    folder = read_model(model, recipe.task.kind)
    recipe, order = with_sharing(folder), order_of(folder.vocabularies)
    entry.refuse(recipe.model)
    refuse_two_sizes(entry, folder.vocabularies)
    tensors = published(entry, folder, recipe, order)
    told: list[bool] = []

    def fill(fresh: Path) -> None:
        write_json(fresh / CONFIG, entry.config(recipe, order))
        write_json(fresh / GENERATION, configs.search_config(recipe, order))
        write_tensors(fresh / WEIGHTS, tensors, ORIGIN)
        told.append(entry.words(folder.vocabularies, fresh))

    write_folder(out, fill)
    return Published(entry.name, told[0])


def with_sharing(folder: ModelFolder) -> Recipe:
    """The recipe with `share_embeddings` as it came to be: two vocabularies have nothing to share."""
    recipe, options = folder.recipe, folder.recipe.model
    if not isinstance(options, TransformerOptions) or (recipe.text.shared and folder.vocabularies.same_names):
        return recipe
    return recipe.model_copy(update={"model": options.model_copy(update={"share_embeddings": False})})


def refuse_two_sizes(entry: Publisher, vocabularies: Vocabularies) -> None:
    source, target = len(vocabularies.source), len(vocabularies.target)
    if source != target:
        raise RecipeError(
            f"text.shared: found vocabularies of {source} and {target} entries, but {entry.name} has one size for "
            "both; train with text.shared true"
        )


def published(entry: Publisher, folder: ModelFolder, recipe: Recipe, order: Order) -> dict[str, Tensor]:
    """Their tensors. Without an output bias, one that only we would have is not there, and one of theirs is zeros."""
    ours, layout = weights(folder.model), entry.layout(recipe, order)
    if BIAS not in ours:
        layout = [part for part in layout if not isinstance(part.fold, Made)]
        ours |= {part.ours: torch.zeros(len(order)) for part in layout if part.ours == BIAS}
    return to_theirs(layout, ours, str(folder.path))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(content, indent=2) + "\n")
