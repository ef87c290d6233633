"""A model of ours as the folder of a published checkpoint, which the transformers library reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RecipeError
from regard.files import refuse_occupied, write_atomically, write_folder
from regard.published.checkpoint import WEIGHTS
from regard.published.families import order_of
from regard.published.layout import Made, to_theirs
from regard.published.publishers import Publisher, publisher
from regard.recipe.folder import open_finished
from regard.recipe.models import TransformerOptions
from regard.recipe.opening import Opened, open_any
from regard.recipe.recipe import Recipe
from regard.tasks.translate import Vocabularies
from regard.training.tensors import weights, write_tensors

BIAS = "decoder.output.bias"
ORIGIN = {"format": "pt"}  # without this note in the weights their library does not read them


@dataclass(frozen=True)
class Published:
    """What was written: for which family, and whether its tokeniser could come along."""

    family: str
    tokeniser: bool


def export_transformers(model: Path, out: Path) -> Published:
    """Writes the folder `out`; what the published family cannot have is refused by name, and nothing is written."""
    refuse_occupied(out)
    entry = publisher(open_finished(model).model)
    folder = open_any(model)
    recipe, lexicon = with_sharing(folder), folder.lexicon
    entry.refuse(recipe.model)
    if isinstance(lexicon, Vocabularies):
        refuse_two_sizes(entry, lexicon)
    tensors = published(entry, folder, recipe)
    told: list[bool] = []

    def fill(fresh: Path) -> None:
        for name, content in entry.files(recipe, lexicon).items():
            write_json(fresh / name, content)
        write_tensors(fresh / WEIGHTS, tensors, ORIGIN)
        told.append(entry.words(lexicon, fresh))

    write_folder(out, fill)
    return Published(entry.name, told[0])


def with_sharing(folder: Opened) -> Recipe:
    """The recipe with `share_embeddings` as it came to be: two vocabularies have nothing to share."""
    recipe, options, words = folder.recipe, folder.recipe.model, folder.lexicon
    if not isinstance(options, TransformerOptions) or not isinstance(words, Vocabularies):
        return recipe
    if recipe.text.shared and words.same_names:
        return recipe
    return recipe.model_copy(update={"model": options.model_copy(update={"share_embeddings": False})})


def refuse_two_sizes(entry: Publisher, vocabularies: Vocabularies) -> None:
    source, target = len(vocabularies.source), len(vocabularies.target)
    if source != target:
        raise RecipeError(
            f"text.shared: found vocabularies of {source} and {target} entries, but {entry.name} has one size for "
            "both; train with text.shared true"
        )


def published(entry: Publisher, folder: Opened, recipe: Recipe) -> dict[str, Tensor]:
    """Their tensors. Without an output bias, one that only we would have is not there, and one of theirs is zeros."""
    ours, layout = weights(folder.model), entry.layout(recipe, folder.lexicon)
    if BIAS not in ours:
        layout = [part for part in layout if not isinstance(part.fold, Made)]
        ours |= {part.ours: torch.zeros(len(order_of(folder.lexicon))) for part in layout if part.ours == BIAS}
    return to_theirs(layout, ours, str(folder.path))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(content, indent=2) + "\n")
