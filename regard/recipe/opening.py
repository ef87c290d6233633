"""A model directory of any task, opened: for commands that need not know what the model can do."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from regard.recipe.folder import Lexicon, open_finished, read_model
from regard.recipe.reading import read_classifier, read_masked
from regard.recipe.recipe import Recipe
from regard.recipe.seeing import read_image_classifier
from regard.tasks.translate import Vocabularies


@dataclass(frozen=True)
class Opened:
    """What every model directory holds."""

    path: Path
    recipe: Recipe
    lexicon: Lexicon
    model: nn.Module


def open_any(folder: Path) -> Opened:
    """The finished model in this directory; ModelFormatError says what is wrong with it."""
    match open_finished(folder).task.kind:
        case "masked":
            masked = read_masked(folder)
            return Opened(folder, masked.recipe, Vocabularies(masked.tokeniser, masked.tokeniser), masked.model)
        case "classify":
            sorting = read_classifier(folder)
            return Opened(folder, sorting.recipe, sorting.classes, sorting.model)
        case "classify-images":
            seeing = read_image_classifier(folder)
            return Opened(folder, seeing.recipe, seeing.lexicon, seeing.model)
        case task:
            writing = read_model(folder, task)
            return Opened(folder, writing.recipe, writing.vocabularies, writing.model)
