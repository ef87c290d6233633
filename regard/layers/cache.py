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


@dataclass(frozen=True)
class KeyValues:
    """One key and one value for each position, of each head."""

    keys: Float[Tensor, "n h k e"]
    values: Float[Tensor, "n h k f"]

    def append(self, keys: Float[Tensor, "n h t e"], values: Float[Tensor, "n h t f"]) -> "KeyValues":
        if self.keys.shape[2] == 0:
            return KeyValues(keys, values)  # teacher forcing starts here: no copy
        return KeyValues(torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2))

    def last(self, positions: int) -> "KeyValues":
        return KeyValues(self.keys[:, :, -positions:], self.values[:, :, -positions:])

    def select(self, rows: Int[Tensor, " m"]) -> "KeyValues":
        return KeyValues(self.keys[rows], self.values[rows])


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
