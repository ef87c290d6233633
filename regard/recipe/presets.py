"""The recipe for someone who gave none: sizes from the corpus, so that two files are enough."""

from collections.abc import Sequence
from typing import Any

from regard.data.pairs import Pair

Tree = dict[str, Any]


def choose(pairs: Sequence[Pair], family: str) -> Tree:
    """A recipe tree (without its data) that fits this much text.

    Small corpora want small models with strong dropout; at two cores, width is also what a minute can afford.
    """
    count = len(pairs)
    if family == "recurrent":
        return {"model": {"kind": family, "width": 128 if count < 5_000 else 256}}
    if count < 5_000:
        size = {"width": 128, "heads": 4, "feedforward": 512, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.2}
    elif count < 100_000:
        size = {"width": 256, "heads": 4, "feedforward": 768, "encoder_layers": 3, "decoder_layers": 3, "dropout": 0.15}
    else:
        size = {"width": 384, "heads": 6, "feedforward": 1536, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.1}
    return {"model": {"kind": "transformer", **size}}
