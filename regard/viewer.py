"""An image classifier that is ready to look: images in, labels with their probabilities out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.data.image_lexicon import ImageLexicon
from regard.data.pictures import fitted, read_image
from regard.data.pixels import normalise
from regard.errors import DataError
from regard.explaining.image_map import class_attention
from regard.models.vit import ImageClassifier
from regard.recipe.seeing import read_image_classifier

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Seen:
    """What an image was taken for: every label with its probability, the likeliest first."""

    ranking: tuple[tuple[str, float], ...]

    @property
    def label(self) -> str:
        return self.ranking[0][0]

    @property
    def probability(self) -> float:
        return self.ranking[0][1]


class Viewer:
    """Tells which label an image has, and where it looked."""

    def __init__(self, lexicon: ImageLexicon, model: ImageClassifier) -> None:
        self.lexicon, self.model = lexicon, model.eval()

    def classify(self, images: Sequence[Path | np.ndarray], *, own_size: bool = False) -> list[Seen]:
        """One answer for each image file, or array of bytes [channels rows columns], in their order.

        Images are brought to the model's size, which may distort them. With `own_size` they stay as they are, if
        patches divide them, and the model's positions are stretched over them: it may then see more, or be confused.
        """
        pixels = [self.pixels(image, own_size=own_size) for image in images]
        return [self.seen(row) for part in batches(pixels, self.patch) for row in self.probabilities(part).tolist()]

    @property
    def patch(self) -> int:
        return self.model.encoder.entrance.patches.size

    def pixels(self, image: Path | np.ndarray, *, own_size: bool = False) -> UInt8[np.ndarray, "c y x"]:
        """The image in the model's colours, and in its size unless it keeps its own."""
        size = None if own_size else self.lexicon.size
        if isinstance(image, Path):
            return read_image(image, size, self.lexicon.channels)
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[0] not in (1, 3) or not image.size:
            raise DataError(
                f"image: found {image.dtype} {image.shape}, expected uint8 (channels, rows, columns) with 1 or 3 "
                "channels; convert it"
            )
        found: np.ndarray = fitted(image[None], size, self.lexicon.channels)[0]
        return found

    @torch.inference_mode()
    def probabilities(self, pixels: UInt8[np.ndarray, "n c y x"]) -> Float[Tensor, "n classes"]:
        """p of each label, in the order of the lexicon."""
        logits: Tensor = self.model(self.numbers(pixels))
        return logits.softmax(-1)

    def numbers(self, pixels: UInt8[np.ndarray, "n c y x"]) -> Float[Tensor, "n c y x"]:
        return torch.from_numpy(normalise(pixels, self.lexicon.normalisation))

    def seen(self, probabilities: Sequence[float]) -> Seen:
        both = zip(self.lexicon.labels, probabilities, strict=True)
        return Seen(tuple(sorted(both, key=lambda entry: -entry[1])))

    def attention(self, pixels: UInt8[np.ndarray, "c y x"]) -> Float[Tensor, "h rows columns"]:
        """How much each head of the last layer looked at each patch to find the label."""
        return class_attention(self.model, self.numbers(pixels[None]))


def batches(images: Sequence[UInt8[np.ndarray, "..."]], patch: int) -> Iterator[UInt8[np.ndarray, "n c y x"]]:
    """Successive images of one shape together, as many as a budget of tokens holds."""
    for (_, rows, columns), same in groupby(images, key=lambda image: image.shape):
        alike, size = list(same), max(1, BATCH_TOKENS // ((rows // patch) * (columns // patch) + 1))
        for first in range(0, len(alike), size):
            yield np.stack(alike[first : first + size])


def load_viewer(path: str | Path) -> Viewer:
    """The image classifier in this directory; ModelFormatError where it is damaged, or learned something else."""
    found = read_image_classifier(Path(path))
    return Viewer(found.lexicon, found.model)
