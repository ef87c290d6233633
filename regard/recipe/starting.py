"""A run that begins with what another model learned: its weights, name by name, and what they were made for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.image_lexicon import ImageLexicon, read_image_lexicon
from regard.errors import ModelFormatError, RecipeError, TrainingError
from regard.files import check_manifest
from regard.layers.patches import resized
from regard.recipe.folder import WEIGHTS, Lexicon, open_finished, other_task
from regard.recipe.reading import READERS
from regard.recipe.recipe import Recipe, Tree, asked, overlay
from regard.recipe.seeing import vit
from regard.tasks.classify import Classes, read_labels
from regard.tasks.options import LanguageModelOptions, TranslateOptions
from regard.training.tensors import fill, finite, read_tensors, weights

WRITERS = ("translate", "denoise")  # one kind of model and of words
KIN = {  # task → tasks whose models a run of it can begin with
    "translate": WRITERS,
    "denoise": WRITERS,
    "language-model": ("language-model",),
    "masked": READERS,
    "classify": READERS,
    "classify-images": ("classify-images",),
    "parse": ("parse",),
}
FREE = {"dropout", "attention_dropout", "balance"}  # choices of training, which leave the weights what they are
ABOVE = {"tie_output", "output_bias"}  # choices of the head that names hidden tokens: a classifier has none
ENCODER, OUTPUT = "encoder.", "output."  # how names begin of what readers share, and of what knows the classes
POSITIONS = "encoder.entrance.positions.table"  # of an image model
GENTLER = 5  # times


@dataclass(frozen=True)
class Start:
    """A finished model that a run begins with."""

    path: Path
    recipe: Recipe

    @property
    def task(self) -> str:
        return self.recipe.task.kind


def open_start(path: Path, task: str) -> Start:
    """The model in this directory, for a run of this task; one that such a run cannot begin with is refused."""
    start = Start(path, open_finished(path))
    if start.task not in KIN[task]:
        raise other_task(path, start.task, *KIN[task], use=" to begin with")
    return start


# ---------------------------------------------------------------- what it decides
def begun(tree: Tree, path: Path) -> Tree:
    """The recipe tree over what the model in `path` decides; another kind of model is refused.

    A task that is not known is left for the recipe to refuse.
    """
    task = asked(tree, "task", TranslateOptions().kind)
    if task not in KIN:
        return tree
    start = open_start(path, task)
    kind = start.recipe.model.kind
    refuse_other("model.kind", asked(tree, "model", kind), kind, path)
    return overlay(brought(start, task), tree)


def brought(start: Start, task: str) -> Tree:
    """Its model and its words; for the same task also how it reads and speaks, and the size of its images."""
    recipe = start.recipe
    found: Tree = {"model": model_of(start, task), "text": recipe.text.model_dump(exclude={"dropout"})}
    if start.task == task:
        found |= {"task": recipe.task.model_dump(), "decoding": recipe.decoding.model_dump()}
    if task == "classify-images":
        lexicon = read_image_lexicon(start.path)
        found["data"] = {"images": {"size": lexicon.size, "channels": lexicon.channels}}
    return found


def model_of(start: Start, task: str) -> dict[str, Any]:
    """The part of its model section that its weights decide."""
    whole = start.task == task == "masked" or start.task not in READERS
    return start.recipe.model.model_dump(exclude=FREE if whole else FREE | ABOVE)


def refuse_unlike(recipe: Recipe, start: Start) -> None:
    """Names the first choice in which the recipe is not what the weights of the start were made for."""
    ours = recipe.model.model_dump()
    for name, value in model_of(start, recipe.task.kind).items():
        refuse_other(f"model.{name}", ours[name], value, start.path)
    theirs = start.recipe.task
    if isinstance(recipe.task, LanguageModelOptions) and isinstance(theirs, LanguageModelOptions):
        refuse_other("task.start", recipe.task.start, theirs.start, start.path)
    if recipe.data.images is not None:
        channels = read_image_lexicon(start.path).channels
        refuse_other("data.images.channels", recipe.data.images.channels, channels, start.path)


def refuse_other(name: str, found: object, expected: object, path: Path) -> None:
    if found != expected:
        raise RecipeError(
            f"{name}: {found}, but the model in {path} has {expected}; leave it out, or start from another"
        )


def gentler(chosen: Tree) -> Tree:
    """A recipe that was chosen for random weights, with a fifth of its peak learning rate.

    The whole rate would soon overwrite what the weights know. Devlin et al. 2019 learn with 1e-4 and train on with 2e-5
    to 5e-5. Tables of words get no higher one: that is for the first epochs.
    """
    rate = round(chosen["training"]["learning_rate"] / GENTLER, 9)  # for the eye: 0.0006, not 0.0006000000000000001
    return overlay(chosen, {"training": {"learning_rate": rate, "rest_rate": 1.0}})


# ---------------------------------------------------------------- what it knows
def start_from(model: nn.Module, recipe: Recipe, lexicon: Lexicon, start: Start) -> None:
    """Fills the model of a run with the weights of the start; what has no counterpart there keeps its first ones.

    That is all but the encoder where one of the two names hidden tokens and the other sorts texts, and the output layer
    of a classifier whose classes have other names.
    """
    path = start.path / WEIGHTS
    found = read_tensors(path)
    if not finite(found):
        raise ModelFormatError(f"{path}: holds values that are not finite; start from another model")
    same_classes = set(classes_of(start)) == set(classes_in(lexicon))
    theirs = in_order(found, classes_of(start), classes_in(lexicon)) if same_classes else found
    if isinstance(lexicon, ImageLexicon):
        theirs = stretched(theirs, read_image_lexicon(start.path).size, lexicon.size, vit(recipe).patch)

    def shared(name: str) -> bool:
        """Whether a tensor of this name is the same thing in both models."""
        if start.task != recipe.task.kind and start.task in READERS:
            return name.startswith(ENCODER)
        return same_classes or not name.startswith(OUTPUT)

    ours = {name: tensor for name, tensor in weights(model).items() if shared(name)}
    fill(ours, {name: tensor for name, tensor in theirs.items() if shared(name)}, path)


def classes_of(start: Start) -> tuple[str, ...]:
    """The names of its classes in the order of its output layer; none where it has no classes."""
    if start.task == "classify":
        return read_labels(start.path)[0].names
    return read_image_lexicon(start.path).labels if start.task == "classify-images" else ()


def classes_in(lexicon: Lexicon) -> tuple[str, ...]:
    match lexicon:
        case Classes():
            return lexicon.labels.names
        case ImageLexicon():
            return lexicon.labels
    return ()


def in_order(found: Mapping[str, Tensor], known: Sequence[str], wanted: Sequence[str]) -> dict[str, Tensor]:
    """The weights with the rows of the output layer in another order of the same classes."""
    places = {name: place for place, name in enumerate(known)}
    rows = [places[name] for name in wanted]
    return {name: tensor[rows] if name.startswith(OUTPUT) else tensor for name, tensor in found.items()}


def stretched(
    found: Mapping[str, Tensor], before: tuple[int, int], after: tuple[int, int], patch: int
) -> dict[str, Tensor]:
    """The weights of an image model with its positions for images of another size; the class token keeps its own."""
    one, other = ((rows // patch, columns // patch) for rows, columns in (before, after))
    table = found[POSITIONS]
    return {**found, POSITIONS: torch.cat([table[:1], resized(table[1:], one, other)])}


# ---------------------------------------------------------------- what a run remembers of it
def noted(start: Start) -> dict[str, str]:
    """Where it stood, and the sha256 of its weights."""
    return {"model": str(start.path), "weights": check_manifest(start.path)["files"][WEIGHTS]}


def start_again(model: nn.Module, recipe: Recipe, lexicon: Lexicon, note: Mapping[str, str]) -> None:
    """`start_from` for a run that ended before its first checkpoint; the weights must be those it began with."""
    start = open_start(Path(note["model"]), recipe.task.kind)
    if noted(start) != note:
        raise TrainingError(
            f"{start.path / WEIGHTS}: changed since this run began with it; put it back, or start a new run"
        )
    start_from(model, recipe, lexicon, start)
