"""Images to sequences: tiles of an image as vectors, and where each tile stands."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import DataError
from regard.layers.initialise import xavier

Grid = tuple[int, int]  # rows and columns of patches


def patches(images: Float[Tensor, "n c y x"], size: int) -> Float[Tensor, "n k p"]:
    """Each image cut into k tiles of `size` × `size`, row by row, each a vector of p = c · size² numbers.

    W times such a vector is a convolution with kernel and stride `size`: the numbers lie as in its kernel.
    Dosovitskiy et al. 2021, eq. 1.
    """
    n, c, y, x = images.shape
    tiles = images.reshape(n, c, y // size, size, x // size, size)
    return tiles.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (n, rows, columns, c, size, size) → (n, k, p)


def resized(table: Float[Tensor, "k d"], grid: Grid, wanted: Grid) -> Float[Tensor, "m d"]:
    """A table with a vector for each place of `grid`, bicubically stretched to the places of `wanted`.

    The table itself where both are equal. Dosovitskiy et al. 2021, §3.2.
    """
    if grid == wanted:
        return table
    picture = table.reshape(*grid, -1).permute(2, 0, 1)[None]  # (k, d) → (1, d, rows, columns)
    stretched = F.interpolate(picture, size=wanted, mode="bicubic", align_corners=False)
    return stretched[0].permute(1, 2, 0).flatten(0, 1)


class PatchEmbedding(nn.Module):
    """W patch + b for each patch of an image of any size that patches divide."""

    def __init__(self, channels: int, size: int, width: int) -> None:
        super().__init__()
        self.channels, self.size = channels, size
        self.dense = xavier(nn.Linear(channels * size * size, width))

    def grid(self, images: Float[Tensor, "n c y x"]) -> Grid:
        """How many rows and columns of patches these images have."""
        channels, height, width = images.shape[1:]
        if channels != self.channels:
            raise DataError(f"images: found {channels} channels, the model reads {self.channels}; convert the images")
        if not height or not width or height % self.size or width % self.size:
            raise DataError(
                f"images: found {height} × {width} pixels, which patches of {self.size} × {self.size} do not divide; "
                f"resize or crop to multiples of {self.size}"
            )
        return height // self.size, width // self.size

    def forward(self, images: Float[Tensor, "n c y x"]) -> Float[Tensor, "n k d"]:
        y: Tensor = self.dense(patches(images, self.size))
        return y


class GridPositions(nn.Module):
    """A trained vector for the class token, then one for each place of a grid, stretched to a grid of another size."""

    def __init__(self, grid: Grid, width: int) -> None:
        super().__init__()
        self.grid = grid
        self.table = nn.Parameter(torch.empty(1 + grid[0] * grid[1], width))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, wanted: Grid) -> Float[Tensor, "k d"]:
        if wanted == self.grid:
            return self.table
        return torch.cat([self.table[:1], resized(self.table[1:], self.grid, wanted)])
