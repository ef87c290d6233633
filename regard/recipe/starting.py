"""A model that begins with what another one learned: its encoder, name by name."""

from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import RecipeError, TrainingError
from regard.files import check_manifest
from regard.recipe.folder import WEIGHTS
from regard.recipe.reading import READERS, bert, open_reader
from regard.recipe.recipe import Recipe
from regard.training.tensors import fill, read_tensors, weights

ENCODER = "encoder."  # how the names begin of what every head has below it
FREE = ("dropout", "attention_dropout", "tie_output", "output_bias")  # choices that leave the encoder as it is


def model_of(start: Path) -> dict[str, Any]:
    """The part of a model section that says what an encoder is; a model without one is refused."""
    return bert(open_reader(start, READERS)).model_dump(exclude=set(FREE))


def refuse_unlike(recipe: Recipe, start: Path) -> None:
    """Names the first size or choice in which the recipe's encoder is not that of `start`."""
    for name, value in model_of(start).items():
        ours = getattr(recipe.model, name)
        if ours != value:
            raise RecipeError(
                f"model.{name}: {ours}, but the model in {start} has {value}; leave it out, or start from another"
            )


def start_from(model: nn.Module, start: Path) -> None:
    """Fills the encoder with the weights of the one in `start`; what stands above it keeps its own first weights."""
    path = start / WEIGHTS
    ours, theirs = (
        {name: tensor for name, tensor in tensors.items() if name.startswith(ENCODER)}
        for tensors in (weights(model), read_tensors(path))
    )
    fill(ours, theirs, path)


def noted(start: Path) -> dict[str, str]:
    """What a run remembers of the model it began with: where it stood, and the sha256 of its weights."""
    return {"model": str(start), "weights": check_manifest(start)["files"][WEIGHTS]}


def start_again(model: nn.Module, note: dict[str, str]) -> None:
    """`start_from` for a run that ended before its first checkpoint; the weights must be those it began with."""
    start = Path(note["model"])
    open_reader(start, READERS)
    if noted(start) != note:
        raise TrainingError(f"{start / WEIGHTS}: changed since this run began with it; put it back, or start a new run")
    start_from(model, start)
