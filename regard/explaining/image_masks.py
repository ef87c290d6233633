"""Masks over the pixels of an image, row by row: smooth random ones for RISE, and the image seen through them."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.pictures import Size
from regard.explaining.rise import Score

CELLS, KEPT = 7, 0.5  # of the paper: cells along a side, and the probability that one is kept


def cell_size(cells: Size, size: Size) -> Size:
    """⌈pixels / cells⌉ of each side: so many cells cover the image."""
    return -(-size[0] // cells[0]), -(-size[1] // cells[1])


def smooth(grid: Float[Tensor, "n h w"], size: Size, shift: Int[Tensor, "n 2"]) -> Float[Tensor, "n y x"]:
    """Cells as a mask of `size` pixels: stretched bilinearly to (h + 1) C × (w + 1) C', then cut out from `shift` on.

    C × C' pixels is the size of a cell, and what is cut away: a shift goes from 0 to C − 1 and C' − 1, so that no
    pixel lies always at the edge of its cell. Petsiuk et al. 2018, §3.2.
    """
    (n, h, w), (rows, columns) = grid.shape, size
    cell = cell_size((h, w), size)
    stretched = (h + 1) * cell[0], (w + 1) * cell[1]
    large = F.interpolate(grid[:, None], size=stretched, mode="bilinear", align_corners=False)[:, 0]
    y, x = shift[:, :1] + torch.arange(rows), shift[:, 1:] + torch.arange(columns)  # (n, rows), (n, columns)
    # Bilinear weights add up to 1 but for rounding.
    return large[torch.arange(n)[:, None, None], y[:, :, None], x[:, None, :]].clamp(0, 1)


def smooth_masks(size: Size, batch: int, generator: torch.Generator) -> Iterator[Float[Tensor, "batch places"]]:
    """Masks without end for images of this size: random cells, randomly shifted."""
    cells = min(CELLS, size[0]), min(CELLS, size[1])
    down, right = cell_size(cells, size)
    while True:
        grid = (torch.rand(batch, *cells, generator=generator) < KEPT).float()
        shifts = [torch.randint(most, (batch,), generator=generator) for most in (down, right)]
        yield smooth(grid, size, torch.stack(shifts, 1)).flatten(1)


def seen_through(
    model: nn.Module, image: Float[Tensor, "1 c y x"], behind: Float[Tensor, "1 c y x"], label: int, batch: int
) -> Score:
    """p(label) of m · image + (1 − m) · behind for each mask m, `batch` images at a time."""

    @torch.no_grad()
    def score(masks: Float[Tensor, "n places"]) -> Float[Tensor, "n 1"]:
        parts = [part.reshape(-1, 1, *image.shape[2:]) for part in torch.split(masks.to(image.dtype), batch)]
        logits = torch.cat([model(part * image + (1 - part) * behind) for part in parts])
        return logits.softmax(-1)[:, label : label + 1]

    return score


def blurred(images: Float[Tensor, "n c y x"]) -> Float[Tensor, "n c y x"]:
    """The images without what makes them recognisable: a Gaussian whose σ is an eighth of the shorter side."""
    y, x = images.shape[2:]
    down, across = (gaussian(size, min(y, x) / 8).to(images.dtype) for size in (y, x))
    return down @ images @ across.mT


def gaussian(size: int, deviation: float) -> Float[Tensor, "size size"]:
    """G[i, j] ∝ exp(−(i − j)² / 2σ²). Each row sums to 1, at the edges too: nothing flows in from outside."""
    places = torch.arange(size, dtype=torch.float64)
    return (-((places[:, None] - places) ** 2) / (2 * deviation**2)).softmax(-1)
