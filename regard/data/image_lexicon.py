"""What an image classifier reads and answers, as a file beside its weights."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from regard.data.options import Positive
from regard.data.pixels import Normalisation
from regard.errors import ModelFormatError
from regard.section import Section

IMAGES = "images.json"


class ImageLexicon(Section):
    """The size that images are brought to, how their pixels become numbers, and the names of the classes."""

    size: tuple[Positive, Positive]  # rows, columns
    channels: Literal[1, 3]
    normalisation: Normalisation
    labels: Annotated[tuple[str, ...], Field(min_length=2)]  # of each class, in the order of the output layer

    @model_validator(mode="after")
    def consistent(self) -> "ImageLexicon":
        if len(self.normalisation.mean) != self.channels:
            raise ValueError(f"normalisation has {len(self.normalisation.mean)} channels, the images {self.channels}")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("two labels are the same")
        return self

    def save(self, folder: Path) -> None:
        (folder / IMAGES).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_image_lexicon(folder: Path) -> ImageLexicon:
    """What `save` wrote; ModelFormatError says what is wrong with it."""
    path = folder / IMAGES
    try:
        return ImageLexicon.model_validate_json(path.read_bytes())
    except OSError:
        raise ModelFormatError(f"{path}: missing, so this is no image model; copy the directory again") from None
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "file"
        message = problem["msg"].removeprefix("Value error, ")
        raise ModelFormatError(f"{path}: {place}: {message}; copy the directory again") from None
