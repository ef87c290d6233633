"""What self-attention remembers of the tokens before.

A cache is never changed in place, so that a search may go on from the same state more than once.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Cache(Protocol):
    """`select` repeats, reorders and drops rows."""

    def select(self, rows: Int[Tensor, " m"]) -> "Cache": ...


SPARE = 16  # positions of new storage, at least, that wait for tokens to come


class Room:
    """Storage of keys and values with place for more; the first `filled` positions are taken."""

    def __init__(
        self, keys: Float[Tensor, "n h k e"], values: Float[Tensor, "n h k f"], rows: int, coming: int = 1
    ) -> None:
        (_, h, filled, e), f = keys.shape, values.shape[-1]
        self.filled, self.size = filled, 2 * filled + coming + SPARE
        self.keys, self.values = keys.new_empty(rows, h, self.size, e), values.new_empty(rows, h, self.size, f)

    def view(self) -> "KeyValues":
        filled = self.filled
        return KeyValues(self.keys[:, :, :filled], self.values[:, :, :filled], self)


@dataclass(frozen=True)
class KeyValues:
    """One key and one value for each position, of each head.

    `room` is storage that they are the first part of. A longer cache writes behind them there, without a copy, unless
    another one has done so before: then it takes a copy of its own, so that no cache ever changes.
    """

    keys: Float[Tensor, "n h k e"]
    values: Float[Tensor, "n h k f"]
    room: Room | None = None

    def append(self, keys: Float[Tensor, "n h t e"], values: Float[Tensor, "n h t f"]) -> "KeyValues":
        old, new = self.keys.shape[2], keys.shape[2]
        if old == 0:
            return KeyValues(keys, values)  # teacher forcing starts here: no copy
        if torch.is_grad_enabled():  # what a gradient will ask for must not be written to
            return KeyValues(torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2))
        room = self.room
        if room is None or room.filled != old or old + new > room.size:
            room = Room(self.keys, self.values, len(self.keys), new)
            room.keys[:, :, :old], room.values[:, :, :old] = self.keys, self.values
        room.keys[:, :, old : old + new], room.values[:, :, old : old + new] = keys, values
        room.filled = old + new
        return room.view()

    def last(self, positions: int) -> "KeyValues":
        return KeyValues(self.keys[:, :, -positions:], self.values[:, :, -positions:])

    def select(self, rows: Int[Tensor, " m"]) -> "KeyValues":
        if self.room is None or torch.is_grad_enabled():
            return KeyValues(self.keys.index_select(0, rows), self.values.index_select(0, rows))
        room = Room(self.keys, self.values, len(rows))  # the next token will want to follow
        seen = room.view()
        torch.index_select(self.keys, 0, rows, out=seen.keys)
        torch.index_select(self.values, 0, rows, out=seen.values)
        return seen


@dataclass(frozen=True)
class RunningSums:
    """S = Σ φ(k) vᵀ and z = Σ φ(k) over the past, and the newest φ(k) and v, not yet added to them.

    Its size does not grow with the number of decoded tokens: one more token costs the same at any length.
    """

    keys: Float[Tensor, "n h k e"]
    values: Float[Tensor, "n h k f"]
    sums: Float[Tensor, "n h e f"]
    norms: Float[Tensor, "n h e"]

    def append(self, keys: Float[Tensor, "n h t e"], values: Float[Tensor, "n h t f"]) -> "RunningSums":
        sums, norms = self.sums + self.keys.mT @ self.values, self.norms + self.keys.sum(2)
        return RunningSums(keys, values, sums, norms)

    def select(self, rows: Int[Tensor, " m"]) -> "RunningSums":
        return RunningSums(self.keys[rows], self.values[rows], self.sums[rows], self.norms[rows])
