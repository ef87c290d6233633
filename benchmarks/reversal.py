"""Every family learns to reverse strings of digits: one table, one way to learn, one page of results.

python -m benchmarks.reversal          all families, results/reversal.json
python -m benchmarks.reversal GRU      those whose name holds "GRU", shown only
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import Result, write
from regard.data.batches import Share
from regard.data.examples import encode
from regard.data.synthetic import reversals
from regard.decoding.bulk import translate
from regard.decoding.options import SearchOptions
from regard.evaluation.scores import exact_match
from regard.models.interface import SequenceToSequence
from regard.recipe.build import build
from regard.recipe.models import (
    ByteNetOptions,
    ConvS2SOptions,
    ModelOptions,
    RecurrentOptions,
    TransformerOptions,
)
from regard.tasks.options import LossOptions
from regard.tasks.translate import TrainingSet, Translation, Validation, Vocabularies
from regard.text.learn import learn as learn_vocabulary
from regard.text.options import TextOptions
from regard.training.loop import train
from regard.training.options import TrainingOptions

ENOUGH = 99.0  # % of unseen strings that come out reversed
UNSEEN, SEEN = 500, 40_000
SHORTEST, LONGEST = 3, 6  # digits


@dataclass(frozen=True)
class Family:
    """A model and as much training as it needs."""

    model: ModelOptions
    steps: int
    learning_rate: float


@dataclass(frozen=True)
class Learned:
    exact_match: float
    seconds: float


def recurrent(steps: int = 500, learning_rate: float = 0.004, **chosen: object) -> Family:
    sizes = {"embedding": 64, "width": 64, "dropout": 0.0}
    return Family(RecurrentOptions.model_validate(sizes | chosen), steps, learning_rate)


def transformer(steps: int = 600, learning_rate: float = 0.003, **chosen: object) -> Family:
    sizes = {"width": 64, "heads": 4, "feedforward": 128, "encoder_layers": 1, "decoder_layers": 1, "max_length": 64}
    return Family(TransformerOptions.model_validate(sizes | {"dropout": 0.0} | chosen), steps, learning_rate)


def deep(steps: int, **chosen: object) -> Family:
    """Three LSTM layers a side, what is read entering from the lowest on."""
    return recurrent(steps, 0.005, cell="lstm", encoder_layers=3, decoder_layers=3, **chosen)


def bytenet(steps: int, learning_rate: float = 0.005, **chosen: object) -> Family:
    """Without attention the encoder must bring each digit to its column: it goes through the rates twice."""
    sizes = {"width": 128, "rates": (1, 2, 4), "encoder_rounds": 2, "decoder_rounds": 1, "dropout": 0.0}
    return Family(ByteNetOptions.model_validate(sizes | chosen), steps, learning_rate)


def convs2s(steps: int, learning_rate: float = 0.003, **chosen: object) -> Family:
    sizes = {"width": 64, "encoder_layers": 2, "decoder_layers": 2, "max_length": 64, "dropout": 0.0}
    return Family(ConvS2SOptions.model_validate(sizes | chosen), steps, learning_rate)


def tanh(steps: int = 800, **chosen: object) -> Family:
    """The cell of the lectures, reading one way. It learns at a lower rate than gated ones, so it takes longer."""
    return recurrent(steps, 0.003, cell="tanh", **ONE_WAY, **chosen)


ONE_WAY = {"bidirectional": False, "input_feeding": False}
BOTH_WAYS = {"bidirectional": True, "input_feeding": False}
FED = {"bidirectional": True, "input_feeding": True}
APART = {"position_join": "concatenate", "tie_output": False}

FAMILIES = {
    # Without attention, the last state alone must hold the string.
    "tanh, no attention": tanh(1200, attention="none"),
    "LSTM, no attention": recurrent(1200, 0.003, cell="lstm", attention="none", **ONE_WAY),
    "GRU, no attention": recurrent(1800, 0.003, cell="gru", attention="none", **ONE_WAY),
    "tanh, dot, one cell for both sides": tanh(1500, attention="dot", shared_cell=True),
    "tanh, dot": tanh(attention="dot"),
    "tanh, scaled dot": tanh(attention="scaled-dot"),
    "tanh, general": tanh(attention="general"),
    "tanh, additive": tanh(attention="additive"),
    "tanh, parameterised": tanh(attention="parameterised"),
    "LSTM, dot": recurrent(cell="lstm", attention="dot", **ONE_WAY),
    "LSTM, scaled dot": recurrent(cell="lstm", attention="scaled-dot", **ONE_WAY),
    "LSTM, general, both ways": recurrent(300, 0.005, cell="lstm", attention="general", **BOTH_WAYS),
    "LSTM, additive, both ways": recurrent(cell="lstm", attention="additive", **BOTH_WAYS),
    "LSTM, parameterised, both ways": recurrent(cell="lstm", attention="parameterised", **BOTH_WAYS),
    "GRU, dot": recurrent(cell="gru", attention="dot", **ONE_WAY),
    "GRU, scaled dot": recurrent(800, 0.003, cell="gru", attention="scaled-dot", **ONE_WAY),
    "GRU, general, both ways": recurrent(cell="gru", attention="general", **BOTH_WAYS),
    "GRU, additive, both ways": recurrent(900, 0.003, cell="gru", attention="additive", width=128, **BOTH_WAYS),
    "GRU, parameterised, both ways": recurrent(300, 0.005, cell="gru", attention="parameterised", **BOTH_WAYS),
    "GRU, additive, input feeding": recurrent(cell="gru", attention="additive", **FED),
    "LSTM, general, input feeding": recurrent(cell="lstm", attention="general", **FED),
    "GRU, coverage": recurrent(1000, 0.003, cell="gru", attention="additive", coverage=True, **BOTH_WAYS),
    "GRU, coverage, input feeding": recurrent(cell="gru", attention="additive", coverage=True, **FED),
    "LSTM, residual, as in GNMT": deep(400, stack="residual"),
    "LSTM, fast-forward, as in Deep-Att": deep(300, stack="fast-forward"),
    "ByteNet": bytenet(900),
    "ConvS2S": convs2s(600),
    "Transformer, sinusoid": transformer(positions="sinusoid"),
    "Transformer, learned": transformer(positions="learned"),
    "Transformer, relative": transformer(positions="relative"),
    "Transformer, rotary": transformer(positions="rotary"),
    "Transformer, ALiBi": transformer(1200, positions="alibi"),
    "Transformer, concatenated sinusoid": transformer(positions="sinusoid", **APART),
    "Transformer, concatenated learned": transformer(positions="learned", **APART),
    "Transformer, window": transformer(attention="window", window=2),
    "Transformer, linear attention": transformer(attention="linear"),
    "Transformer, post-norm": transformer(order="post"),
    "Transformer, RMS norm": transformer(norm="rms"),
    "Transformer, ε outside the root": transformer(norm="layer-outside"),
    "Transformer, SwiGLU": transformer(activation="swiglu"),
    "Transformer, GeGLU": transformer(activation="geglu"),
    "Transformer, ReGLU": transformer(activation="reglu"),
    "Transformer, two of four experts": transformer(experts=4, active=2, feedforward=64),
}


def learn(family: Family, seed: int, folder: Path) -> Learned:
    """Trains in `folder` as `regard train` does, then decodes strings that were never seen, by beam search."""
    began = time.perf_counter()
    pairs = reversals(UNSEEN + SEEN, seed, SHORTEST, LONGEST)
    unseen, seen = pairs[:UNSEEN], pairs[UNSEEN:]  # the first ones: short strings are soon all taken
    digits = learn_vocabulary([pair.source for pair in seen], TextOptions(kind="characters"), seed)
    vocabularies = Vocabularies(digits, digits)
    examples, kept = encode(seen, digits, digits, max_tokens=LONGEST + 1)
    data = TrainingSet(examples, kept, [Share(len(examples))], batch_tokens=1024, dropout=0.0, seed=seed)
    task = Translation(data, Validation(unseen, SearchOptions(), UNSEEN), vocabularies, LossOptions(smoothing=0.0))
    model = build(family.model, len(digits), len(digits), shared=True, seed=seed)
    options = TrainingOptions(
        steps=family.steps, learning_rate=family.learning_rate, seed=seed, validations=0, saves=1, warmup=0.1
    )
    for _ in train(model, task, options, folder=folder, width=family.model.width):
        pass
    outputs = decoded(model, vocabularies, [pair.source for pair in unseen])
    return Learned(exact_match(outputs, [pair.target for pair in unseen]), time.perf_counter() - began)


def decoded(model: SequenceToSequence, vocabularies: Vocabularies, texts: list[str]) -> list[str]:
    found = translate(model, [vocabularies.source.encode(text) for text in texts], SearchOptions())
    return [vocabularies.target.decode(hypotheses[0].tokens) for hypotheses in found]


def measure(wanted: str, seed: int) -> Iterator[tuple[str, Learned]]:
    """Each family whose name holds `wanted`, and what came of it."""
    for name, family in FAMILIES.items():
        if wanted.lower() in name.lower():
            with tempfile.TemporaryDirectory() as folder:
                yield name, learn(family, seed, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reversal", description=__doc__)
    parser.add_argument("wanted", nargs="?", default="", help="part of a family's name; all are written to results/")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    began, figures = time.perf_counter(), {}
    for name, learned in measure(chosen.wanted, chosen.seed):
        sys.stdout.write(f"{learned.exact_match:6.2f} %  {learned.seconds:5.1f} s  {name}\n")
        sys.stdout.flush()
        figures[f"{name}: exact match, %"] = learned.exact_match
        figures[f"{name}: seconds"] = learned.seconds
    if not chosen.wanted:
        command = f"python -m benchmarks.reversal --seed {chosen.seed}"
        write("reversal", Result(command, (time.perf_counter() - began) / 60, figures, NOTES))


NOTES = (
    f"Each family learns from {SEEN:,} strings of {SHORTEST} to {LONGEST} digits to write them backwards, and is asked "
    f"for {UNSEEN} others, decoded by beam search (beam {SearchOptions().beam}). Exact match counts whole strings. The "
    "seconds include data, training, checkpoint and decoding."
)


if __name__ == "__main__":
    main()
