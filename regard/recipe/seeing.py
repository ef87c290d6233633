"""Model directories of image classifiers, opened for use."""

from dataclasses import dataclass
from pathlib import Path

from regard.data.image_lexicon import ImageLexicon, read_image_lexicon
from regard.models.vit import ImageClassifier
from regard.recipe.build_vit import build_vit
from regard.recipe.folder import open_for, read_weights, weights_refused
from regard.recipe.models import VitOptions
from regard.recipe.recipe import Recipe


@dataclass(frozen=True)
class ImageFolder:
    """A model that tells images apart, ready to use."""

    path: Path
    recipe: Recipe
    lexicon: ImageLexicon
    model: ImageClassifier


def vit(recipe: Recipe) -> VitOptions:
    assert isinstance(recipe.model, VitOptions)  # no other kind passes for this task
    return recipe.model


def fresh_image_classifier(recipe: Recipe, lexicon: ImageLexicon) -> ImageClassifier:
    """The recipe's model with its first weights."""
    with weights_refused():
        return build_vit(vit(recipe), lexicon, seed=recipe.training.seed)


def read_image_classifier(folder: Path) -> ImageFolder:
    """The finished image classifier in this directory; ModelFormatError says what is wrong with it."""
    recipe = open_for("classify-images", folder)
    lexicon = read_image_lexicon(folder)
    model = fresh_image_classifier(recipe, lexicon)
    read_weights(folder, model)
    return ImageFolder(folder, recipe, lexicon, model.eval())
