"""A smaller model: the same without some of its heads, whose weights are cut out and not merely zero."""

import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.explaining.explanation import Kind
from regard.explaining.heads import Head, Headed, headed, heads_at
from regard.files import check_manifest, refuse_occupied, write_folder, write_manifest
from regard.recipe.folder import CARD, DATA, LOG, RECIPE, WEIGHTS, ModelFolder, fresh_model, write_weights
from regard.recipe.models import KeptHeads, Layers, StackOptions
from regard.recipe.recipe import Recipe, to_yaml
from regard.tasks.guiding import taught_head
from regard.training.tensors import fill, weights

Options = TypeVar("Options", bound=StackOptions)


# ---------------------------------------------------------------- weights
def keep_rows(x: Float[Tensor, "rows *rest"], heads: int, width: int, kept: Sequence[int]) -> Tensor:
    """Of parts · heads · width rows, part by part those of the kept heads, which count from 0."""
    parts = x.reshape(-1, heads, width, *x.shape[1:])
    return parts[:, torch.tensor(kept)].flatten(0, 2)


def cut(module: Headed, kept: Sequence[int]) -> dict[str, Tensor]:
    """The weights of an attention module, by name, with these of its heads alone.

    Projections lose rows, the output projection columns; what that adds as a bias belongs to no head.
    """
    heads = module.heads
    width = module.output.in_features // heads
    found: dict[str, Tensor] = {}
    for name, x in module.state_dict().items():
        match name:
            case "output.weight":
                found[name] = keep_rows(x.mT, heads, width, kept).mT
            case "output.bias":
                found[name] = x
            case _:
                found[name] = keep_rows(x, heads, width, kept)
    return found


def smaller(model: nn.Module, removed: Collection[Head]) -> dict[str, Tensor]:
    """The weights of a model, by name, without those of the removed heads."""
    found = weights(model)
    for path, module in headed(model).items():
        kept = [place for place, head in enumerate(heads_at(path, module)) if head not in removed]
        found |= {f"{path}.{name}": x for name, x in cut(module, kept).items()}
    return found


# ---------------------------------------------------------------- recipes
def without(options: Options, removed: Collection[Head]) -> Options:
    """The model section of such a model. Heads count among those that the model has; the section keeps their names."""

    def left(kind: Kind) -> Layers:
        return tuple(
            tuple(name for place, name in enumerate(heads, start=1) if Head(kind, layer, place) not in removed)
            for layer, heads in enumerate(options.heads_of(kind), start=1)
        )

    return options.model_copy(update={"kept_heads": KeptHeads(**{str(kind): left(kind) for kind in options.stacks})})


def taught(recipe: Recipe) -> Head | None:
    """The head that learned to align words, if one did: `regard align` looks at it."""
    if not recipe.loss.guided or not isinstance(recipe.model, StackOptions):
        return None
    return Head("cross", *taught_head(recipe.loss, recipe.model.stacks["cross"]))


def pruned_recipe(recipe: Recipe, removed: Collection[Head]) -> Recipe:
    """Which must not lose the head that learned to align; that may have another number then."""
    assert isinstance(recipe.model, StackOptions)
    head, loss = taught(recipe), recipe.loss
    if head is not None:
        before = [Head(head.kind, head.layer, place) for place in range(1, head.head)]
        loss = loss.model_copy(update={"guided_head": head.head - sum(one in removed for one in before)})
    return recipe.model_copy(update={"model": without(recipe.model, removed), "loss": loss})


# ---------------------------------------------------------------- directories
def prune(folder: ModelFolder, removed: Collection[Head]) -> ModelFolder:
    """The same model without these heads, in memory; each layer keeps one at least."""
    recipe = pruned_recipe(folder.recipe, removed)
    model = fresh_model(recipe, folder.vocabularies)
    fill(weights(model), smaller(folder.model, removed), folder.path / WEIGHTS)
    return replace(folder, recipe=recipe, model=model.eval())


def write_pruned(folder: ModelFolder, out: Path, card: str) -> None:
    """What `prune` gave as a model directory, with all that its own directory has but the story of the training."""
    refuse_occupied(out)

    def fill_folder(fresh: Path) -> None:
        for name in check_manifest(folder.path)["files"].keys() - {RECIPE, WEIGHTS, CARD, LOG, DATA}:
            shutil.copyfile(folder.path / name, fresh / name)
        (fresh / RECIPE).write_text(to_yaml(folder.recipe), encoding="utf-8")
        write_weights(fresh, folder.model)
        (fresh / CARD).write_text(card, encoding="utf-8")
        write_manifest(fresh, {})

    write_folder(out, fill_folder)
