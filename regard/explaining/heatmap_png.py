"""A map of attention as a PNG file, for whatever takes no SVG: the same picture, twice as large."""

import importlib.util
import io
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.errors import RegardError
from regard.explaining.heatmap import labels, peak

CELL = 48  # side of a cell, in px
SIZE = 26  # of the letters
GAP = 12  # between letters and cells
HEAT, AGAINST, INK = (11, 92, 173), (213, 94, 0), (90, 90, 90)
FONTS = ("DejaVuSans.ttf", "Arial.ttf", "LiberationSans-Regular.ttf")  # the first that is there; they know many scripts


def shades(weights: Float[Tensor, "q k"]) -> UInt8[np.ndarray, "q k 3"]:
    """White at 0, the hue at the largest size; what is below 0 has the other hue."""
    values = weights.double().numpy()
    strength = np.abs(values)[..., None] / (peak(weights.abs()) or 1.0)
    hue = np.where(values[..., None] < 0, AGAINST, HEAT)
    colours: UInt8[np.ndarray, "q k 3"] = np.rint(255 + strength * (hue - 255.0)).astype(np.uint8)
    return colours


def png(weights: Float[Tensor, "q k"], columns: Sequence[str], rows: Sequence[str]) -> bytes:
    """The labelled map. Keys lean over their columns, queries stand before their rows. Needs Pillow."""
    refuse_without_pillow()
    from PIL import Image

    side, above = written(labels(rows)), written(labels(columns))
    leaning = [one.rotate(60, Image.Resampling.BICUBIC, expand=True) for one in above]
    left = 2 * GAP + max(one.width for one in side)
    top = 2 * GAP + max(one.height for one in leaning)
    cells = Image.fromarray(shades(weights)).resize((CELL * len(columns), CELL * len(rows)), Image.Resampling.NEAREST)
    right = max(one.width for one in leaning)
    page = Image.new("RGB", (left + cells.width + right, top + cells.height + GAP), "white")
    page.paste(cells, (left, top))
    for i, one in enumerate(side):
        page.paste(INK, (left - GAP - one.width, top + CELL * i + (CELL - one.height) // 2), one)
    for i, (one, flat) in enumerate(zip(leaning, above, strict=True)):
        # A label begins over the middle of its column, whatever its height.
        page.paste(INK, (left + CELL * i + CELL // 2 - flat.height // 2, top - GAP // 2 - one.height), one)
    return saved(page)


def saved(page: Any) -> bytes:
    file = io.BytesIO()
    page.save(file, "PNG")
    return file.getvalue()


def refuse_without_pillow() -> None:
    if importlib.util.find_spec("PIL") is None:
        raise RegardError(
            "PNG: Pillow draws it, and is not installed; pip install 'regard[images]', or ask for an .svg file"
        )


def written(names: Sequence[str]) -> list[Any]:
    """Each name by itself, as a mask that is as large as its letters."""
    from PIL import Image, ImageDraw

    font, found = letters(), []
    for name in names:
        left, top, right, bottom = (round(edge) for edge in font.getbbox(name))
        mask = Image.new("L", (max(1, right - left), max(1, bottom - top)))
        ImageDraw.Draw(mask).text((-left, -top), name, fill=255, font=font)
        found.append(mask)
    return found


def letters() -> Any:
    """The first of FONTS that this machine has, else Pillow's own."""
    from PIL import ImageFont

    for name in FONTS:
        with suppress(OSError):
            return ImageFont.truetype(name, SIZE)
    return ImageFont.load_default(SIZE)
