"""One tensor under several names: a checkpoint may store any of them, and what it stores decides."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from regard.published.layout import Entry, Fold, Repeated


def adds_nothing(name: str, tensors: Mapping[str, Tensor], names: Sequence[str]) -> bool:
    """Whether `name` is not stored, or as a copy of one of `names`."""
    return name not in tensors or any(torch.equal(tensors[name], tensors[other]) for other in names if other in tensors)


def stored(ours: str, names: Sequence[str], held: Collection[str], fold: Fold) -> Entry:
    """An entry of those names for one tensor that a checkpoint holds; where it holds none, the first is missing."""
    found = tuple(name for name in names if name in held) or (names[0],)
    return Entry(ours, found, Repeated(len(found), fold))
