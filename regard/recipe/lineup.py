"""The line-up by name: each model that Table 2 of "Attention Is All You Need" compares, at the size of a corpus.

What each one is, and how it differs from its paper, is told in docs/models.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.training.options import EPOCHS

Tree = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """How large a Transformer a corpus can feed, and how fast that learns; the other families follow it."""

    width: int
    heads: int
    feedforward: int
    layers: int  # a side
    dropout: float
    batch_tokens: int
    learning_rate: float  # of a preset of pace 1
    epochs: float = EPOCHS  # of a run for which no length was asked
    weight_decay: float | None = None  # where Muon trains a translator; none: the one that everybody has


@dataclass(frozen=True)
class Preset:
    """A model section for any size, the optimiser that fits the family, and by how much faster than 1 it learns.

    After 120 steps on short Multi30k pairs, 0.003, pace 1, had a lower validation loss than 0.001 or 0.0015 for
    ConvS2S, GNMT and the plain RNN. ConvS2S, which has no norms, had 4.4 with AdamW and 4.7 with Muon; ByteNet 3.9
    with Muon and 4.7 with AdamW at 0.001. With Muon after 900 steps on Multi30k a Transformer had 33.7 BLEU on the
    dev set with 0.003 and 35.2 with 0.006; with 0.012 it was behind from step 270 on. After twelve minutes on one
    core the bidirectional GRU had 32.3 with 0.003 and 32.9 with 0.006, the plain RNN 0.5 and 2.2; after five ConvS2S
    had 28.9 and 31.4, simple attention 20.8 and 21.8, parameterised attention 10.2 and 4.9, Deep-Att 7.2 and 3.9,
    GNMT no difference. Where Muon had 0.006, a Transformer on Multi30k had after 400 steps a dev perplexity of 17.7,
    11.6, 9.9 and 10.2 with 0.002, 0.006, 0.018 and 0.036 for the rest (`rest` a third, 1, 3, 6); in half an hour 1 and
    3 are level. A mixture and the fast one have the same tables and were not tried.
    """

    model: Callable[[Size], Tree]
    optimiser: str
    pace: float
    attends: bool = True  # to its source, so that a head can be taught where to look
    rest: float = 1.0  # training.rest_rate

    def learning_rate(self, size: Size) -> float:
        return self.pace * size.learning_rate


def transformer(size: Size) -> Tree:
    return {
        "kind": "transformer",
        "width": size.width,
        "heads": size.heads,
        "feedforward": size.feedforward,
        "encoder_layers": size.layers,
        "decoder_layers": size.layers,
        "dropout": size.dropout,
        "positions": "rotary",
    }


def fast(size: Size) -> Tree:
    """Deep encoder, shallow decoder: only the decoder runs once for every word. Kasai et al. 2021."""
    return transformer(size) | {"encoder_layers": max(6, 2 * size.layers), "decoder_layers": 1}


def mixture(size: Size) -> Tree:
    """Two of eight experts, each half as wide: as much work for each word, four times the weights."""
    return transformer(size) | {"experts": 8, "active": 2, "feedforward": size.feedforward // 2}


def recurrent(size: Size) -> Tree:
    return {"kind": "recurrent", "embedding": size.width, "width": size.width, "dropout": size.dropout}


def of_the_decks(size: Size) -> Tree:
    """One tanh layer a side that reads forwards, and nothing that returns to the input."""
    return recurrent(size) | {"cell": "tanh", "bidirectional": False, "input_feeding": False}


def plain(size: Size) -> Tree:
    return of_the_decks(size) | {"attention": "none"}


def simple(size: Size) -> Tree:
    return of_the_decks(size) | {"attention": "dot", "shared_cell": True}


def parameterised(size: Size) -> Tree:
    return of_the_decks(size) | {"attention": "parameterised", "shared_cell": True}


def deep(size: Size, stack: str) -> Tree:
    """LSTM layers, a third more of them than a Transformer has, at least three: there residual ones begin."""
    layers = max(3, size.layers + size.layers // 3)
    return recurrent(size) | {"cell": "lstm", "stack": stack, "encoder_layers": layers, "decoder_layers": layers}


def bytenet(size: Size) -> Tree:
    """Blocks with the rates 1 to 16, gone through once for every two layers of a Transformer."""
    rounds = (size.layers + 1) // 2
    rates = {"encoder_rounds": rounds, "decoder_rounds": rounds}
    return {"kind": "bytenet", "width": 2 * size.width, "dropout": size.dropout} | rates


def convs2s(size: Size) -> Tree:
    layers = {"encoder_layers": size.layers + 1, "decoder_layers": size.layers}
    return {"kind": "convs2s", "width": size.width, "dropout": size.dropout} | layers


LINEUP = {
    "rnn": Preset(plain, "adamw", 2.0, attends=False),
    "simple-attention": Preset(simple, "adamw", 2.0),
    "parameterised-attention": Preset(parameterised, "adamw", 1.0),
    "bidirectional-gru": Preset(recurrent, "adamw", 2.0),
    "gnmt": Preset(lambda size: deep(size, "residual"), "adamw", 1.0),
    "deep-att": Preset(lambda size: deep(size, "fast-forward"), "adamw", 1.0),
    "bytenet": Preset(bytenet, "muon", 2.0, attends=False),
    "convs2s": Preset(convs2s, "adamw", 2.0),
    "moe": Preset(mixture, "muon", 2.0, rest=3.0),
    "transformer": Preset(transformer, "muon", 2.0, rest=3.0),
    "fast": Preset(fast, "muon", 2.0, rest=3.0),
}
OF_A_KIND = {"recurrent": "bidirectional-gru"}  # of a family that is asked for by its kind alone; else the kind's name
