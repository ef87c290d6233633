"""What an image classifier looks at: the weights of its class token over the patches, drawn over the image."""

import base64
import struct
import zlib

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.explaining.heatmap import cells, peak
from regard.explaining.markup import text
from regard.explaining.record import watch
from regard.models.vit import ImageClassifier

SIDE, GAP, LINE = 160, 12, 20  # px: the longer side of a panel, between panels, of its caption


@torch.no_grad()
def class_attention(model: ImageClassifier, image: Float[Tensor, "1 c y x"]) -> Float[Tensor, "h rows columns"]:
    """How much of each patch every head of the last layer gives to the class token.

    A head's weights sum to 1 less what the token gives to itself. The model is in evaluation mode.
    """
    grid = model.encoder.entrance.patches.grid(image)
    with watch(model) as calls:
        model(image)
    last = list(calls.values())[-1][0]  # (1, h, q, k)
    return last[0, :, 0, 1:].reshape(-1, *grid)


def attention_svg(pixels: UInt8[np.ndarray, "c y x"], weights: Float[Tensor, "h rows columns"], title: str) -> str:
    """The image, then once more for each head with its patches the more covered the more they are looked at."""
    _, rows, columns = pixels.shape
    scale = SIDE / max(rows, columns)
    width, height = columns * scale, rows * scale
    step = max(width, 90) + GAP  # room for the caption
    address = base64.b64encode(png(pixels)).decode("ascii")
    image = f'<image id="seen" width="{width:g}" height="{height:g}" preserveAspectRatio="none" ' + (
        f'style="image-rendering:pixelated" href="data:image/png;base64,{address}"/>'
    )
    panels = [f'<text y="-6">{text(title)}</text>{image}']
    for number, head in enumerate(weights, start=1):
        cell = f"scale({width / head.shape[1]:g} {height / head.shape[0]:g})"
        panels.append(
            f'<text y="-6">head {number}: 0 to {peak(head):.2f}</text><use href="#seen"/>'
            f'<g opacity=".75" transform="{cell}">{cells(head)}</g>'
        )
    placed = (f'<g transform="translate({i * step:g} 0)">{panel}</g>' for i, panel in enumerate(panels))
    size = f"{len(panels) * step - GAP:g}", f"{height + LINE:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-LINE} {size[0]} {size[1]}" width="{size[0]}" '
        f'height="{size[1]}" color="#e05000" font-family="system-ui, sans-serif" font-size="12" fill="#777" '
        f'role="img" aria-label="attention over the image">{"".join(placed)}</svg>\n'
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
