"""A model directory: self-contained, code-free, checked when it is opened.

recipe.yaml  model.safetensors  source.* target.* (or shared.*: the tokenisers)  README.md (the model card)
training.jsonl (the run, event by event)  film.jsonl (where it looked meanwhile)  report.html (both as a page)
data.json (what was read and left out)  manifest.json (sha256 of each)
shortlist.safetensors (which target ids a source id may turn into; not where the vocabulary is small)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from safetensors.torch import save
from torch import nn

from regard.decoding.shortlist import Shortlist
from regard.errors import ModelFormatError, RecipeError
from regard.files import MANIFEST, check_manifest, write_atomically
from regard.models.interface import SequenceToSequence
from regard.recipe.build import build
from regard.recipe.recipe import Recipe, parse, read_tree, to_yaml
from regard.tasks.translate import Vocabularies
from regard.text.load import load
from regard.training.memory import SIGNS
from regard.training.tensors import check_match, fill, finite, read_tensors, weights

WEIGHTS, RECIPE, CARD, LOG, DATA = "model.safetensors", "recipe.yaml", "README.md", "training.jsonl", "data.json"
SHORTLIST, FILM, REPORT = "shortlist.safetensors", "film.jsonl", "report.html"
COMMANDS = {  # what uses a model of each task
    "translate": "translate",
    "language-model": "generate",
    "masked": "fill",
    "denoise": "translate",
    "classify": "classify",
    "classify-images": "see",
    "parse": "parse",
}


@dataclass(frozen=True)
class ModelFolder:
    """What a model directory holds, ready to use."""

    path: Path
    recipe: Recipe
    vocabularies: Vocabularies
    model: SequenceToSequence
    shortlist: Shortlist | None = None


@runtime_checkable
class Lexicon(Protocol):
    """What turns a user's input into numbers, and numbers into answers: tokenisers, names of classes."""

    def save(self, folder: Path) -> None: ...


def write_recipe(folder: Path, recipe: Recipe, lexicon: Lexicon) -> None:
    """What a model is made from; the weights follow when there are any."""
    (folder / RECIPE).write_text(to_yaml(recipe), encoding="utf-8")
    lexicon.save(folder)


def read_recipe(folder: Path) -> Recipe:
    try:
        return parse(read_tree(folder / RECIPE), str(folder / RECIPE))
    except RecipeError as error:
        raise ModelFormatError(str(error)) from None


def read_vocabularies(folder: Path, recipe: Recipe) -> Vocabularies:
    """Published translators have one vocabulary, and cut the texts of each side by a model of its own."""
    if recipe.text.shared and not any(folder.glob("source.*")):
        both = load(folder, "shared")
        return Vocabularies(both, both)
    return Vocabularies(load(folder, "source"), load(folder, "target"))


def fresh_model(recipe: Recipe, vocabularies: Vocabularies) -> SequenceToSequence:
    """The recipe's model with its first weights."""
    source, target = len(vocabularies.source), len(vocabularies.target)
    shared = recipe.text.shared and vocabularies.same_names
    with weights_refused():
        return build(recipe.model, source, target, shared=shared, seed=recipe.training.seed)


def refuse_impossible(recipe: Recipe) -> None:
    """Builds the model without memory for its weights: sizes that do not go together are known at once."""
    with weights_refused(), torch.device("meta"):
        build(recipe.model, 5, 5, shared=recipe.text.shared, seed=0)


@contextmanager
def weights_refused() -> Iterator[None]:
    """Turns weights that no memory can hold into one line."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(sign in str(error).lower() for sign in (*SIGNS, "overflow")):
            raise
        raise RecipeError(
            "model: its weights do not fit into memory; lower its width, feedforward or layers"
        ) from error


def write_weights(folder: Path, model: nn.Module) -> None:
    """The weights as one file that is whole or not there."""
    write_atomically(folder / WEIGHTS, save({name: tensor.contiguous() for name, tensor in weights(model).items()}))


def write_shortlist(folder: Path, shortlist: Shortlist) -> None:
    ids = {"table": shortlist.table, "always": shortlist.always}
    write_atomically(folder / SHORTLIST, save({name: tensor.int().contiguous() for name, tensor in ids.items()}))


def read_shortlist(folder: Path, vocabularies: Vocabularies) -> Shortlist | None:
    """None where the model has no shortlist: its vocabulary is small, or an older Regard trained it."""
    path, vocab = folder / SHORTLIST, len(vocabularies.target)
    if not path.exists():
        return None
    found = read_tensors(path)
    each = found["table"].shape[-1] if "table" in found and found["table"].dim() else 0
    always = found["always"].numel() if "always" in found else 0
    sizes = {"table": (len(vocabularies.source), each), "always": (always,)}
    check_match({name: torch.empty(size, dtype=torch.int32) for name, size in sizes.items()}, found, path)
    for name, ids in found.items():
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < vocab:
            raise ModelFormatError(
                f"{path}: tensor {name!r} holds ids outside the {vocab} of the vocabulary; train again"
            )
    return Shortlist(found["table"], found["always"], vocab)


def read_model(folder: Path, task: str = "translate") -> ModelFolder:
    """The finished model of this task in this directory; ModelFormatError says what is wrong with it."""
    recipe = open_for(task, folder)
    vocabularies = read_vocabularies(folder, recipe)
    model = fresh_model(recipe, vocabularies)
    read_weights(folder, model)
    return ModelFolder(folder, recipe, vocabularies, model, read_shortlist(folder, vocabularies))


def open_for(task: str, folder: Path) -> Recipe:
    """The recipe of a finished model for this task, or for one that is used alike; another is refused by its use."""
    recipe = open_finished(folder)
    if COMMANDS[recipe.task.kind] != COMMANDS[task]:
        raise other_task(folder, recipe.task.kind, task)
    return recipe


def other_task(folder: Path, found: str, *expected: str, use: str = "") -> ModelFormatError:
    """What is said of a model that cannot do what is asked of it: what it is, and what it can be used with."""
    return ModelFormatError(
        f"{folder}: is a model of the task {found}, expected one of the task {' or '.join(expected)}{use}; "
        f"use it with regard {COMMANDS[found]}"
    )


def open_finished(folder: Path) -> Recipe:
    """The recipe of a model directory that is whole: of a finished training, no file of it damaged."""
    if not folder.is_dir():
        raise ModelFormatError(f"{folder}: no such model directory")
    if (folder / RECIPE).exists() and not (folder / MANIFEST).exists():
        raise ModelFormatError(
            f"{folder}: no {MANIFEST}, so this training is not finished; go on with: regard train --resume {folder}"
        )
    check_manifest(folder)
    return read_recipe(folder)


def read_weights(folder: Path, model: nn.Module) -> None:
    """Fills the model with the weights in its directory."""
    stored = read_tensors(folder / WEIGHTS)
    if not finite(stored):
        raise ModelFormatError(f"{folder / WEIGHTS}: holds values that are not finite; train again or copy it again")
    fill(weights(model), stored, folder / WEIGHTS)
