"""Model directories of encoders, opened for use: what fills holes, what sorts texts, and the encoder of either."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.masking import mask_id
from regard.models.bert import BertEncoder, MaskedLanguageModel, TextClassifier
from regard.recipe.build_bert import build_classifier, build_masked
from regard.recipe.folder import open_finished, other_task, read_vocabularies, read_weights, weights_refused
from regard.recipe.models import BertOptions
from regard.recipe.recipe import Recipe
from regard.tasks.classify import Classes, read_labels
from regard.tasks.options import MaskedOptions
from regard.text.tokeniser import Tokeniser

READERS = ("masked", "classify")  # tasks whose models have an encoder of this kind


@dataclass(frozen=True)
class MaskedFolder:
    """A model that names hidden tokens, ready to use."""

    path: Path
    recipe: Recipe
    tokeniser: Tokeniser
    model: MaskedLanguageModel


@dataclass(frozen=True)
class ClassifierFolder:
    """A model that sorts texts, ready to use."""

    path: Path
    recipe: Recipe
    classes: Classes
    model: TextClassifier


@dataclass(frozen=True)
class EncoderFolder:
    """What both have: `longest` counts the tokens that it learned to read together."""

    tokeniser: Tokeniser
    encoder: BertEncoder
    longest: int


def fresh_masked(recipe: Recipe, tokeniser: Tokeniser) -> MaskedLanguageModel:
    """The recipe's model with its first weights."""
    with weights_refused():
        return build_masked(bert(recipe), mask_id(tokeniser) + 1, recipe.training.seed)


def fresh_classifier(recipe: Recipe, classes: Classes) -> TextClassifier:
    """The recipe's model with its first weights; it has a row for the mask too, as the model that it may start from."""
    with weights_refused():
        vocab = mask_id(classes.tokeniser) + 1
        return build_classifier(bert(recipe), vocab, len(classes.labels), recipe.training.seed)


def bert(recipe: Recipe) -> BertOptions:
    assert isinstance(recipe.model, BertOptions)  # no other kind passes for these tasks
    return recipe.model


def open_reader(folder: Path, tasks: Sequence[str]) -> Recipe:
    """The recipe of a finished model of one of these tasks."""
    recipe = open_finished(folder)
    if recipe.task.kind not in tasks:
        raise other_task(folder, recipe.task.kind, *tasks)
    return recipe


def read_masked(folder: Path) -> MaskedFolder:
    """The finished masked language model in this directory; ModelFormatError says what is wrong with it."""
    recipe = open_reader(folder, ["masked"])
    tokeniser = read_vocabularies(folder, recipe).target
    model = fresh_masked(recipe, tokeniser)
    read_weights(folder, model)
    return MaskedFolder(folder, recipe, tokeniser, model.eval())


def read_classifier(folder: Path) -> ClassifierFolder:
    """The finished classifier of texts in this directory; ModelFormatError says what is wrong with it."""
    recipe = open_reader(folder, ["classify"])
    classes = Classes(read_vocabularies(folder, recipe).target, *read_labels(folder))
    model = fresh_classifier(recipe, classes)
    read_weights(folder, model)
    return ClassifierFolder(folder, recipe, classes, model.eval())


def read_encoder(folder: Path) -> EncoderFolder:
    """The encoder of either kind of model."""
    recipe = open_reader(folder, READERS)
    if isinstance(recipe.task, MaskedOptions):
        masked = read_masked(folder)
        return EncoderFolder(masked.tokeniser, masked.model.encoder, recipe.task.context)
    sorting = read_classifier(folder)
    return EncoderFolder(sorting.classes.tokeniser, sorting.model.encoder, recipe.data.max_tokens)
