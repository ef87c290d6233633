"""The picture of maps over an image as a PNG file, for whatever takes no SVG: the same panels, twice as large."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.explaining.heatmap import peak, relative
from regard.explaining.heatmap_png import GAP, INK, refuse_without_pillow, saved, written
from regard.explaining.image_map import ACROSS

SIDE = 320  # px: the longer side of a panel
LINE = 48  # of its caption
COVER, OPACITY = (224, 80, 0), 0.75  # of the largest value


def covered(
    pixels: UInt8[np.ndarray, "c y x"], weights: Float[Tensor, "rows columns"] | None = None
) -> UInt8[np.ndarray, "y2 x2 3"]:
    """The image, large and in colours, the more covered the larger the map is; below 0 it stays uncovered."""
    _, rows, columns = pixels.shape
    scale = SIDE / max(rows, columns)
    size = max(1, round(rows * scale)), max(1, round(columns * scale))
    image = stretched(np.broadcast_to(pixels, (3, rows, columns)), size).transpose(1, 2, 0).astype(float)
    if weights is not None:
        share = OPACITY * stretched(torch.tensor(relative(weights)).numpy()[None], size)[0][..., None]
        image = (1 - share) * image + share * np.array(COVER)
    drawn: UInt8[np.ndarray, "y2 x2 3"] = np.rint(image).astype(np.uint8)
    return drawn


def stretched(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Each value a rectangle: what a viewer does with `image-rendering: pixelated`."""
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, values.shape[1:], strict=True))
    return values[:, rows[:, None], columns]


def map_png(pixels: UInt8[np.ndarray, "c y x"], maps: Mapping[str, Float[Tensor, "rows columns"]], title: str) -> bytes:
    """The image, then once more for each map, in rows, under their captions. Needs Pillow."""
    refuse_without_pillow()
    from PIL import Image

    captions = written([title, *(f"{name}: 0 to {peak(shown.clamp(min=0)):.2g}" for name, shown in maps.items())])
    panels = [Image.fromarray(covered(pixels, one)) for one in (None, *maps.values())]
    step = max(one.width for one in (*captions, *panels)) + 2 * GAP
    lines = LINE + panels[0].height
    size = min(len(panels), ACROSS) * step - 2 * GAP, math.ceil(len(panels) / ACROSS) * lines
    page = Image.new("RGB", size, "white")
    for i, (caption, panel) in enumerate(zip(captions, panels, strict=True)):
        left, top = i % ACROSS * step, i // ACROSS * lines
        page.paste(INK, (left, top + (LINE - caption.height) // 2), caption)
        page.paste(panel, (left, top + LINE))
    return saved(page)
