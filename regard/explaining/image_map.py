"""What an image classifier depends on: maps over the patches that its attention gives, drawn over the image."""

import base64
import math
import struct
import zlib
from collections.abc import Mapping

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.data.pictures import Size
from regard.explaining.heatmap import cells, peak
from regard.explaining.markup import text
from regard.explaining.rollout import recorded, recorded_with_gradients, relevance, rollout
from regard.models.vit import ImageClassifier

SIDE, GAP, LINE = 160, 12, 20  # px: the longer side of a panel, between panels, of its caption
ACROSS = 7  # panels: an image and twelve heads make two rows


# ---------------------------------------------------------------- maps, of a model in evaluation mode
def class_attention(model: ImageClassifier, image: Float[Tensor, "1 c y x"]) -> Float[Tensor, "layers h rows columns"]:
    """How much of each patch every head of every layer gives to the class token.

    A head's weights sum to 1 less what the token gives to itself.
    """
    grid = model.encoder.entrance.patches.grid(image)
    weights = recorded(model, lambda: model(image))[:, :, 0, 1:]
    return weights.reshape(*weights.shape[:2], *grid)


def rollout_map(model: ImageClassifier, image: Float[Tensor, "1 c y x"]) -> Float[Tensor, "rows columns"]:
    """How much of each patch reaches the class token through all layers, as `rollout` has it."""
    grid = model.encoder.entrance.patches.grid(image)
    return rollout(recorded(model, lambda: model(image)))[0, 1:].reshape(grid)


def gradient_map(model: ImageClassifier, image: Float[Tensor, "1 c y x"], label: int) -> Float[Tensor, "rows columns"]:
    """How relevant each patch is to the class token where that raises the logit of the label, as `relevance` has it."""
    grid = model.encoder.entrance.patches.grid(image)
    return relevance(*recorded_with_gradients(model, lambda: model(image)[0, label]))[0, 1:].reshape(grid)


def over_pixels(weights: Float[Tensor, "rows columns"], size: Size) -> Float[Tensor, "y x"]:
    """A map bilinearly stretched over an image, so that one of patches has an order of pixels too."""
    return F.interpolate(weights[None, None], size=size, mode="bilinear", align_corners=False)[0, 0]


# ---------------------------------------------------------------- the picture
def map_svg(pixels: UInt8[np.ndarray, "c y x"], maps: Mapping[str, Float[Tensor, "rows columns"]], title: str) -> str:
    """The image, then once more for each map, the more covered the larger the map is; below 0 it stays uncovered."""
    _, rows, columns = pixels.shape
    scale = SIDE / max(rows, columns)
    width, height = columns * scale, rows * scale
    step = max(width, 120) + GAP  # room for the caption
    address = base64.b64encode(png(pixels)).decode("ascii")
    image = f'<image id="seen" width="{width:g}" height="{height:g}" preserveAspectRatio="none" ' + (
        f'style="image-rendering:pixelated" href="data:image/png;base64,{address}"/>'
    )
    panels = [f'<text y="-6">{text(title)}</text>{image}']
    for name, weights in maps.items():
        shown = weights.clamp(min=0)
        cell = f"scale({width / shown.shape[1]:g} {height / shown.shape[0]:g})"
        panels.append(
            f'<text y="-6">{text(name)}: 0 to {peak(shown):.2g}</text><use href="#seen"/>'
            f'<g opacity=".75" transform="{cell}">{cells(shown)}</g>'
        )
    lines = height + LINE
    placed = (
        f'<g transform="translate({i % ACROSS * step:g} {i // ACROSS * lines:g})">{panel}</g>'
        for i, panel in enumerate(panels)
    )
    size = f"{min(len(panels), ACROSS) * step - GAP:g}", f"{math.ceil(len(panels) / ACROSS) * lines:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-LINE} {size[0]} {size[1]}" width="{size[0]}" '
        f'height="{size[1]}" color="#e05000" font-family="system-ui, sans-serif" font-size="12" fill="#777" '
        f'role="img" aria-label="maps over the image">{"".join(placed)}</svg>\n'
    )


def png(pixels: UInt8[np.ndarray, "c y x"]) -> bytes:
    """The pixels of a grey or coloured image as a PNG file. ISO/IEC 15948."""
    channels, rows, columns = pixels.shape
    lines = pixels.transpose(1, 2, 0).reshape(rows, -1)
    raw = np.column_stack([np.zeros(rows, dtype=np.uint8), lines]).tobytes()  # each line begins with its filter: none
    head = struct.pack(">IIBBBBB", columns, rows, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
