"""An image classifier that is ready to look: images in, labels with their probabilities out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.data.image_lexicon import ImageLexicon
from regard.data.pictures import Size, fitted, read_image
from regard.data.pixels import normalise
from regard.errors import DataError
from regard.explaining.faithfulness import Faithfulness, deletion, insertion
from regard.explaining.image_map import class_attention, gradient_map, over_pixels, rollout_map
from regard.explaining.image_masks import blurred, seen_through, smooth_masks
from regard.explaining.rise import Saliency, Score, Stop, rise
from regard.models.vit import ImageClassifier
from regard.recipe.seeing import read_image_classifier

BATCH_TOKENS = 4096
MASKS = 64  # at most, between two looks at whether they are enough


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
    """Tells which label an image has, and what that depends on: four maps, and how faithful each of them is."""

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

    # ---------------------------------------------------------------- what the label depends on
    def attention(self, pixels: UInt8[np.ndarray, "c y x"]) -> Float[Tensor, "layers h rows columns"]:
        """How much each head of each layer looked at each patch to find the label."""
        return class_attention(self.model, self.numbers(pixels[None]))

    def rollout(self, pixels: UInt8[np.ndarray, "c y x"]) -> Float[Tensor, "rows columns"]:
        """How much of each patch came through all layers, by their attention alone."""
        return rollout_map(self.model, self.numbers(pixels[None]))

    def gradient(self, pixels: UInt8[np.ndarray, "c y x"]) -> Float[Tensor, "rows columns"]:
        """The same through the heads that speak for the likeliest label, as far as they do."""
        return gradient_map(self.model, self.numbers(pixels[None]), self.likeliest(pixels))

    def rise(self, pixels: UInt8[np.ndarray, "c y x"], stop: Stop, generator: torch.Generator) -> Iterator[Saliency]:
        """What each pixel, row by row, adds to p of the likeliest label: ever better estimates, the last is the result.

        Hidden pixels have the mean colour of the training images.
        """
        size = size_of(pixels)
        masks = smooth_masks(size, min(MASKS, at_once(size, self.patch)), generator)
        return rise(self.through(pixels, torch.zeros_like), masks, stop)

    def faithfulness(self, pixels: UInt8[np.ndarray, "c y x"], weights: Float[Tensor, "rows columns"]) -> Faithfulness:
        """What becomes of p of the likeliest label as pixels go and come in the order of a map.

        Deleted pixels get the mean colour of the training images; inserted ones come into the blurred image, which
        has no edges that a model could take for something. Petsiuk et al. 2018, §4.
        """
        order = over_pixels(weights, size_of(pixels)).flatten().argsort(descending=True, stable=True)
        return Faithfulness(
            deletion=float(deletion(self.through(pixels, torch.zeros_like), order)),
            insertion=float(insertion(self.through(pixels, blurred), order)),
        )

    def through(self, pixels: UInt8[np.ndarray, "c y x"], behind: Callable[[Tensor], Tensor]) -> Score:
        """p of the label that is likeliest for the whole image, asked of the image with pixels hidden.

        `behind` makes of the image what shows where it is hidden; 0 is the mean colour, which `numbers` subtracts.
        """
        image = self.numbers(pixels[None])
        return seen_through(
            self.model, image, behind(image), self.likeliest(pixels), at_once(size_of(pixels), self.patch)
        )

    def likeliest(self, pixels: UInt8[np.ndarray, "c y x"]) -> int:
        return int(self.probabilities(pixels[None])[0].argmax())


def size_of(pixels: UInt8[np.ndarray, "c y x"]) -> Size:
    _, rows, columns = pixels.shape
    return rows, columns


def batches(images: Sequence[UInt8[np.ndarray, "..."]], patch: int) -> Iterator[UInt8[np.ndarray, "n c y x"]]:
    """Successive images of one shape together, as many as a budget of tokens holds."""
    for (_, rows, columns), same in groupby(images, key=lambda image: image.shape):
        alike, size = list(same), at_once((rows, columns), patch)
        for first in range(0, len(alike), size):
            yield np.stack(alike[first : first + size])


def at_once(size: Size, patch: int) -> int:
    """How many images of a size the budget of tokens holds."""
    return max(1, BATCH_TOKENS // ((size[0] // patch) * (size[1] // patch) + 1))


def load_viewer(path: str | Path) -> Viewer:
    """The image classifier in this directory; ModelFormatError where it is damaged, or learned something else."""
    found = read_image_classifier(Path(path))
    return Viewer(found.lexicon, found.model)
