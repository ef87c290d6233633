"""Where a token stands: tables joined to the input (sinusoids, learned), and how each one gets in."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import DecodingError
from regard.layers.initialise import normal_rows


def sinusoids(length: int, width: int, base: float = 10_000.0) -> Float[Tensor, "t d"]:
    """PE(pos, 2i) = sin(pos / C^{2i/d}), PE(pos, 2i+1) = cos(pos / C^{2i/d}), with C = `base`, in float64.

    Vaswani et al. 2017, §3.5. `width` is even.
    """
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(length, dtype=torch.float64)[:, None] / base ** (even / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)  # (t, d/2, 2) → (t, d)


def sinusoids_in_halves(length: int, width: int, base: float) -> Float[Tensor, "t d"]:
    """The numbers of `sinusoids` in another order: all sines, then all cosines, as Marian has them."""
    pairs = sinusoids(length, width, base)
    return torch.cat([pairs[:, 0::2], pairs[:, 1::2]], -1)


Waves = Callable[[int, int, float], Tensor]  # `sinusoids`, or the same in another order


@runtime_checkable
class Table(Protocol):
    """One vector for each position from `start` on."""

    def __call__(self, length: int, start: int) -> Float[Tensor, "t d"]: ...


class Sinusoid(nn.Module):
    """Rows of `waves`, computed once; the table grows when a longer input comes."""

    table: Tensor

    def __init__(self, rows: int, width: int, base: float, waves: Waves = sinusoids) -> None:
        super().__init__()
        self.width, self.base, self.waves = width, base, waves
        self.register_buffer("table", self.rows(rows), persistent=False)

    def rows(self, length: int) -> Float[Tensor, "t d"]:
        # Rounded to float32 at every growth, or a model in float64 would meet two versions of one row.
        return self.waves(length, self.width, self.base).float()

    def forward(self, length: int, start: int) -> Float[Tensor, "t d"]:
        table = self.table
        if start + length > len(table):
            table = self.rows(max(start + length, 2 * len(table))).to(table)
            self.table = table
        return table[start : start + length]


class Learned(nn.Module):
    """A trained vector for each of `rows` positions; there is none beyond."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = normal_rows(nn.Embedding(rows, width))

    def forward(self, length: int, start: int) -> Float[Tensor, "t d"]:
        rows = self.table.num_embeddings
        if start + length > rows:
            raise DecodingError(
                f"positions: found a sequence of {start + length} tokens, but the model learned {rows} positions; "
                "shorten or split the text, or train with a larger model.max_length"
            )
        return self.table.weight[start : start + length]


class Added(nn.Module):
    """x + PE."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def forward(self, x: Float[Tensor, "n t d"], start: int) -> Float[Tensor, "n t d"]:
        return x + self.table(x.shape[1], start)


class Concatenated(nn.Module):
    """[x; PE]: the result is wider than x by the width of the table."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def forward(self, x: Float[Tensor, "n t d"], start: int) -> Float[Tensor, "n t e"]:
        return torch.cat([x, self.table(x.shape[1], start).expand(len(x), -1, -1)], -1)


class Unplaced(nn.Module):
    """x: the input carries no positions."""

    def forward(self, x: Float[Tensor, "n t d"], start: int) -> Float[Tensor, "n t d"]:  # noqa: ARG002
        return x
