"""Telling images apart as a job: images with labels, their size and colours, accuracy."""

import hashlib
from pathlib import Path

import torch

from regard.data.image_lexicon import ImageLexicon, read_image_lexicon
from regard.data.images import LabelledImages, LoadedImages, load_images
from regard.data.options import ImageOptions
from regard.data.pixels import Normalisation
from regard.errors import DataError, RecipeError
from regard.evaluation.accuracy import accuracy, confused, macro_f1
from regard.jobs.interface import Prepared, Verdict
from regard.recipe.image_presets import choose_image_classifier
from regard.recipe.recipe import Recipe, Tree
from regard.recipe.seeing import fresh_image_classifier, vit
from regard.tasks.images import ImageClassification, Variety
from regard.training.events import Finished

OF_TEXT = ("rdrop", "source_word_dropout", "target_word_dropout")  # losses that read tokens
CONFUSIONS = 5  # that a card names


class ImageJob:
    """See jobs/interface.py for what each method promises."""

    def refuse_impossible(self, recipe: Recipe) -> None:
        for name in OF_TEXT:
            if value := getattr(recipe.loss, name):
                raise RecipeError(f"loss.{name}: {value:g}, but images have no words to do that with; leave it 0")
        images, model = images_of(recipe), vit(recipe)
        black = Normalisation(mean=(0.0,), std=(1.0,))
        size = images.size or (model.patch, model.patch)  # of images that are not read yet
        with torch.device("meta"):
            lexicon = ImageLexicon(size=size, channels=1, normalisation=black, labels=("one", "other"))
            fresh_image_classifier(recipe, lexicon)

    def load(self, recipe: Recipe) -> LoadedImages:
        return load_images(images_of(recipe), recipe.data.valid_size, recipe.training.seed)

    def choose(self, loaded: LoadedImages, name: str, asked: Recipe) -> Tree:  # noqa: ARG002
        images, _, rows, columns = loaded.training.pixels.shape
        return choose_image_classifier(images, (rows, columns))

    def learn(self, recipe: Recipe, loaded: LoadedImages) -> ImageLexicon:  # noqa: ARG002
        return lexicon_of(loaded, loaded.normalisation)

    def read(self, folder: Path, recipe: Recipe) -> ImageLexicon:  # noqa: ARG002
        return read_image_lexicon(folder)

    def prepare(self, recipe: Recipe, loaded: LoadedImages, lexicon: ImageLexicon) -> Prepared:
        # A model that this run begins with brings how pixels become numbers; sizes and labels are those of its images.
        lexicon = lexicon_of(loaded, lexicon.normalisation)
        model = fresh_image_classifier(recipe, lexicon)
        images, (rows, columns), patch = images_of(recipe), lexicon.size, vit(recipe).patch
        tokens = (rows // patch) * (columns // patch) + 1
        variety = Variety(max(1, recipe.data.batch_tokens // tokens), images.shift, images.flip, recipe.training.seed)
        task = ImageClassification(
            loaded.training, loaded.validation, lexicon.normalisation, variety, recipe.loss.smoothing
        )
        text = fingerprint(loaded.training, loaded.validation)
        return Prepared(recipe, loaded.report, text, lexicon, task, model)

    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:  # noqa: ARG002
        """The scores of the validation images, and what was taken for what."""
        task, lexicon = prepared.task, prepared.lexicon
        assert isinstance(task, ImageClassification)
        assert isinstance(lexicon, ImageLexicon)
        with torch.no_grad():
            loss, counts = task.judge(prepared.model)
        scores = {"loss": loss, "accuracy": accuracy(counts), "macro_f1": macro_f1(counts)}
        (rows, columns), labels = lexicon.size, lexicon.labels
        return Verdict(
            summary=f"accuracy {scores['accuracy']:.2f} %, macro F1 {scores['macro_f1']:.2f}",
            usage=[f"regard see {folder.name} image.png", f"regard see {folder.name} folder-of-labelled-folders"],
            scores=[
                f"## Quality on {int(counts.sum()):,} validation images ({prepared.report.origin})",
                "",
                f"- accuracy {scores['accuracy']:.2f} %",
                f"- macro F1 {scores['macro_f1']:.2f}",
                f"- loss {loss:.4f} nats an image",
                *(
                    f"- {labels[actual]} taken for {labels[taken]}: {count}"
                    for actual, taken, count in confused(counts)[:CONFUSIONS]
                ),
            ],
            text=[
                f"{len(labels)} labels; images of {rows} × {columns} pixels, "
                f"{'grey' if lexicon.channels == 1 else 'in colour'}"
            ],
            facts={"validation": scores},
        )


def images_of(recipe: Recipe) -> ImageOptions:
    if recipe.data.images is None:
        raise RecipeError(
            "data.images: missing, but task classify-images learns from images; give data.images.train, or --images"
        )
    return recipe.data.images


def lexicon_of(loaded: LoadedImages, normalisation: Normalisation) -> ImageLexicon:
    """What such images need: their size, their colours, their labels, and how their pixels become numbers."""
    _, channels, rows, columns = loaded.training.pixels.shape
    if channels != len(normalisation.mean):
        raise DataError(
            f"data.images: found images of {channels} channels, the model reads {len(normalisation.mean)}; "
            f"set data.images.channels to {len(normalisation.mean)}"
        )
    content = {"size": (rows, columns), "channels": channels, "labels": loaded.labels.names}
    return ImageLexicon.model_validate({**content, "normalisation": normalisation})


def fingerprint(*parts: LabelledImages) -> str:
    """sha256 of the pixels and labels in their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part.pixels.shape}".encode())
        digest.update(part.pixels.tobytes())
        digest.update(part.labels.tobytes())
    return digest.hexdigest()
