"""The recipe for someone who gave none: sizes from the corpus, so that two files are enough."""

from collections.abc import Sequence
from typing import Any

from regard.data.pairs import Pair

Tree = dict[str, Any]

# (pairs below, width, heads, feed-forward, layers a side, dropout, tokens a batch, peak learning rate)
SIZES = (
    (5_000, 128, 4, 512, 2, 0.2, 1000, 0.003),
    (100_000, 192, 4, 768, 3, 0.1, 2000, 0.003),
    (1_000_000, 320, 5, 1280, 4, 0.1, 3000, 0.002),
)
LARGE = (512, 8, 2048, 6, 0.1, 4096, 0.001)


def choose(pairs: Sequence[Pair], family: str) -> Tree:
    """A recipe tree (without its data files) that fits this much text, on a CPU.

    Small corpora want small models and many updates. On Multi30k (29,000 pairs) rotary positions and Muon each lowered
    the validation loss for the same minutes; the moving average of weights stands in for choosing a checkpoint.
    """
    fitting = (sizes for limit, *sizes in SIZES if len(pairs) < limit)
    width, heads, feedforward, layers, dropout, tokens, rate = next(fitting, LARGE)
    training = {"learning_rate": rate, "schedule": "linear", "ema": 0.995}
    if family == "recurrent":
        return {"data": {"batch_tokens": tokens}, "model": {"kind": family, "width": width}, "training": training}
    model = {
        "kind": family,
        "width": width,
        "heads": heads,
        "feedforward": feedforward,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "dropout": dropout,
        "positions": "rotary",
    }
    return {"data": {"batch_tokens": tokens}, "model": model, "training": {**training, "optimiser": "muon"}}
