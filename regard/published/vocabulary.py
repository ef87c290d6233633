"""Which id of theirs each id of ours stands for: entry i is theirs, or −1 where they have none, a filler."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ModelFormatError

NONE = -1
# The output bias of a filler, whose embedding is zero: e^-10000 is 0 in every float, so no search will choose it. Not
# lower: label smoothing adds ε/V of it to the loss that is shown.
SILENT = -1e4

Order = tuple[int, ...]


def special_first(vocab: int, *, unk: int, start: int, end: int) -> Order:
    """PAD, a filler: what hides padding is its mask; then UNK, BOS, EOS as given, and the rest in their order."""
    special = (unk, start, end)
    if len(set(special)) < len(special) or not all(0 <= id < vocab for id in special):
        raise ModelFormatError(
            f"config.json: found unknown, start and end token {unk}, {start} and {end}, expected three ids below "
            f"vocab_size {vocab}; copy the checkpoint again"
        )
    return (NONE, *special, *(id for id in range(vocab) if id not in special))


def silence(order: Order) -> Float[Tensor, " vocab"]:
    """An output bias that only keeps fillers out."""
    return torch.tensor([SILENT if id == NONE else 0.0 for id in order])
