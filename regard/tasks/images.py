"""Telling images apart as a task: varied batches, cross-entropy over classes, validation by accuracy."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.chance import chance
from regard.data.images import LabelledImages
from regard.data.pixels import Normalisation, flip, normalise, shift
from regard.evaluation.accuracy import Counts, accuracy, confusion, macro_f1
from regard.layers.loss import Loss, smoothed_cross_entropy
from regard.models.vit import ImageClassifier

Plan = Int[np.ndarray, "rows 4"]  # of each image: its index, how far it moves down and right, 1 if it is mirrored


@dataclass(frozen=True)
class Batch:
    images: Float[Tensor, "n c y x"]
    labels: Int[Tensor, " n"]


@dataclass(frozen=True)
class Variety:
    """How an epoch differs from others: images of a batch, pixels that they may move, whether half are mirrored."""

    rows: int
    shift: int
    flip: bool
    seed: int


def image_epoch(images: int, variety: Variety, epoch: int) -> list[Plan]:
    """Every image once, in a new order, moved and mirrored anew: what happens to one depends on no other.

    A pure function of its arguments.
    """
    # One source for the whole epoch: one for each image would take longer to make than the image to vary.
    rng = chance(variety.seed, epoch, 0)
    moves = rng.integers(-variety.shift, variety.shift, size=(images, 2), endpoint=True)
    mirrored = rng.integers(2, size=images) if variety.flip else np.zeros(images, dtype=np.int64)
    rows = np.column_stack([np.arange(images), moves, mirrored])[rng.permutation(images)]
    return [rows[first : first + variety.rows] for first in range(0, images, variety.rows)]


class ImageClassification:
    """The task that the training loop runs; see tasks/interface.py for what each method promises."""

    def __init__(
        self,
        training: LabelledImages,
        validation: LabelledImages,
        normalisation: Normalisation,
        variety: Variety,
        smoothing: float,
    ) -> None:
        self.training, self.validation, self.normalisation = training, validation, normalisation
        self.variety, self.smoothing = variety, smoothing

    def batches(self, epoch: int) -> list[Plan]:
        return image_epoch(len(self.training.labels), self.variety, epoch)

    def largest(self) -> Plan:
        return self.batches(0)[0]

    def collate(self, plan: Plan, epoch: int) -> Batch:  # noqa: ARG002
        index, down, right, mirrored = plan.T
        pixels = self.training.pixels[index]
        if self.variety.flip:
            pixels = flip(pixels, mirrored == 1)
        if self.variety.shift:
            pixels = shift(pixels, down, right)
        return self.batch(LabelledImages(pixels, self.training.labels[index]))

    def batch(self, images: LabelledImages) -> Batch:
        return Batch(torch.from_numpy(normalise(images.pixels, self.normalisation)), torch.from_numpy(images.labels))

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        assert isinstance(model, ImageClassifier)
        return cross_entropy(model(batch.images), batch.labels, self.smoothing)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per image (no smoothing), accuracy and macro F1 in %, of the validation images."""
        loss, counts = self.judge(model)
        return {"loss": loss, "accuracy": accuracy(counts), "macro_f1": macro_f1(counts)}

    def judge(self, model: nn.Module) -> tuple[float, Counts]:
        """Mean loss per validation image, and how often each class was taken for which."""
        assert isinstance(model, ImageClassifier)
        total, predicted = 0.0, []
        for batch in self.held_out():
            logits = model(batch.images)
            total += float(cross_entropy(logits, batch.labels, 0.0).total)
            predicted += logits.argmax(-1).tolist()
        labels = self.validation.labels.tolist()
        return total / len(labels), confusion(predicted, labels, model.output.out_features)

    def held_out(self) -> Iterator[Batch]:
        valid, rows = self.validation, self.variety.rows
        for first in range(0, len(valid.labels), rows):
            part = slice(first, first + rows)
            yield self.batch(LabelledImages(valid.pixels[part], valid.labels[part]))


def cross_entropy(logits: Float[Tensor, "n classes"], labels: Int[Tensor, " n"], smoothing: float) -> Loss:
    """Σ of the smoothed cross-entropy over images."""
    return Loss(smoothed_cross_entropy(logits, labels, smoothing), len(labels))
