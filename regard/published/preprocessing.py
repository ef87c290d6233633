"""preprocessor_config.json: how the pixels of an image become the numbers that a published ViT reads."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from regard.data.image_lexicon import ImageLexicon
from regard.data.pixels import Normalisation
from regard.errors import ModelFormatError
from regard.published.checkpoint import read_object
from regard.published.config import Published, read

PREPROCESSOR = "preprocessor_config.json"
WHITE = 255  # of a pixel in bytes
BILINEAR = 2  # Pillow's number of the filter that Regard resizes with
Kind = Literal["ViTImageProcessor", "ViTImageProcessorFast", "ViTImageProcessorPil", "ViTFeatureExtractor"]
Finite = Annotated[float, Field(gt=-1e9, lt=1e9)]
Above = Annotated[float, Field(gt=1e-9, lt=1e9)]


class Preprocessor(Published):
    """(x · rescale_factor − mean) / std, of an image that was brought to `size`.

    Where a file is silent, it is as their ViTImageProcessor has it.
    """

    image_processor_type: Kind | None = None
    feature_extractor_type: Kind | None = None  # as older files call it
    do_resize: bool = True
    size: Any = 224  # a side, or {"height": …, "width": …}
    resample: Literal[2] = 2
    do_center_crop: Literal[False] | None = None
    do_pad: Literal[False] | None = None
    do_rescale: bool = True
    rescale_factor: Above = 1 / WHITE
    do_normalize: bool = True
    image_mean: list[Finite] | None = None  # none: 0.5
    image_std: list[Above] | None = None  # none: 0.5


def read_normalisation(folder: Path, image: tuple[int, int], channels: int) -> Normalisation:
    """What their preprocessor does, as (x / 255 − mean) / std; whatever else it would do is refused by name."""
    theirs = read(Preprocessor, read_object(folder / PREPROCESSOR), PREPROCESSOR)
    if theirs.do_resize and sides(theirs.size) != image:
        raise refusal("size", theirs.size, f"the {image[0]} × {image[1]} pixels that config.json gives")
    mean, std = [0.0] * channels, [1.0] * channels
    if theirs.do_normalize:
        mean, std = theirs.image_mean or [0.5] * channels, theirs.image_std or [0.5] * channels
    for key, values in (("image_mean", mean), ("image_std", std)):
        if len(values) != channels:
            raise refusal(key, values, f"one number for each of {channels} channels")
    white = WHITE * (theirs.rescale_factor if theirs.do_rescale else 1.0)
    return Normalisation(mean=tuple(x / white for x in mean), std=tuple(x / white for x in std))


def sides(size: Any) -> tuple[int, int] | None:
    """Rows and columns; none where the size says something else, such as the shortest edge."""
    match size:
        case int(side):
            return side, side
        case {"height": int(rows), "width": int(columns)}:
            return rows, columns
    return None


def refusal(key: str, found: Any, expected: str) -> ModelFormatError:
    return ModelFormatError(f"{PREPROCESSOR}: {key}: found {found!s:.80}, expected {expected}; use another checkpoint")


def preprocessor_config(lexicon: ImageLexicon) -> dict[str, Any]:
    """The way back."""
    rows, columns = lexicon.size
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": rows, "width": columns},
        "resample": BILINEAR,
        "do_rescale": True,
        "rescale_factor": 1 / WHITE,
        "do_normalize": True,
        "image_mean": list(lexicon.normalisation.mean),
        "image_std": list(lexicon.normalisation.std),
    }
