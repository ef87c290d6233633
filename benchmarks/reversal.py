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
from regard.recipe.models import RecurrentOptions, TransformerOptions
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

    model: TransformerOptions | RecurrentOptions
    steps: int = 300
    learning_rate: float = 0.005


@dataclass(frozen=True)
class Learned:
    exact_match: float
    seconds: float


def recurrent(**chosen: object) -> RecurrentOptions:
    return RecurrentOptions.model_validate({"embedding": 64, "width": 64, "dropout": 0.0} | chosen)


def transformer(**chosen: object) -> TransformerOptions:
    sizes = {"width": 64, "heads": 4, "feedforward": 128, "encoder_layers": 1, "decoder_layers": 1, "max_length": 64}
    return TransformerOptions.model_validate(sizes | {"dropout": 0.0} | chosen)


ONE_WAY = {"bidirectional": False, "input_feeding": False}

FAMILIES = {
    # Without attention, the last state alone must hold the string.
    "tanh, no attention": Family(recurrent(cell="tanh", attention="none", **ONE_WAY)),
    "LSTM, no attention": Family(recurrent(cell="lstm", attention="none", **ONE_WAY)),
    "GRU, no attention": Family(recurrent(cell="gru", attention="none", **ONE_WAY)),
    "tanh, dot, one cell for both sides": Family(recurrent(cell="tanh", attention="dot", shared_cell=True, **ONE_WAY)),
    "tanh, dot": Family(recurrent(cell="tanh", attention="dot", **ONE_WAY)),
    "tanh, scaled dot": Family(recurrent(cell="tanh", attention="scaled-dot", **ONE_WAY)),
    "tanh, general": Family(recurrent(cell="tanh", attention="general", **ONE_WAY)),
    "tanh, additive": Family(recurrent(cell="tanh", attention="additive", **ONE_WAY)),
    "tanh, parameterised": Family(recurrent(cell="tanh", attention="parameterised", **ONE_WAY)),
    "LSTM, dot": Family(recurrent(cell="lstm", attention="dot", **ONE_WAY)),
    "LSTM, scaled dot": Family(recurrent(cell="lstm", attention="scaled-dot", **ONE_WAY)),
    "LSTM, general, both ways": Family(recurrent(cell="lstm", attention="general", input_feeding=False)),
    "LSTM, additive, both ways": Family(recurrent(cell="lstm", attention="additive", input_feeding=False)),
    "LSTM, parameterised, both ways": Family(recurrent(cell="lstm", attention="parameterised", input_feeding=False)),
    "GRU, dot": Family(recurrent(cell="gru", attention="dot", **ONE_WAY)),
    "GRU, scaled dot": Family(recurrent(cell="gru", attention="scaled-dot", **ONE_WAY)),
    "GRU, general, both ways": Family(recurrent(cell="gru", attention="general", input_feeding=False)),
    "GRU, additive, both ways": Family(recurrent(cell="gru", attention="additive", input_feeding=False)),
    "GRU, parameterised, both ways": Family(recurrent(cell="gru", attention="parameterised", input_feeding=False)),
    "GRU, additive, input feeding": Family(recurrent(cell="gru", attention="additive")),
    "LSTM, general, input feeding": Family(recurrent(cell="lstm", attention="general")),
    "GRU, coverage": Family(recurrent(cell="gru", coverage=True, input_feeding=False)),
    "GRU, coverage, input feeding": Family(recurrent(cell="gru", coverage=True)),
    "Transformer, sinusoid": Family(transformer(positions="sinusoid")),
    "Transformer, learned": Family(transformer(positions="learned")),
    "Transformer, relative": Family(transformer(positions="relative")),
    "Transformer, rotary": Family(transformer(positions="rotary")),
    "Transformer, ALiBi": Family(transformer(positions="alibi")),
    "Transformer, concatenated sinusoid": Family(
        transformer(positions="sinusoid", position_join="concatenate", tie_output=False)
    ),
    "Transformer, concatenated learned": Family(
        transformer(positions="learned", position_join="concatenate", tie_output=False)
    ),
    "Transformer, window": Family(transformer(attention="window", window=2)),
    "Transformer, linear attention": Family(transformer(attention="linear")),
    "Transformer, post-norm": Family(transformer(order="post")),
    "Transformer, RMS norm": Family(transformer(norm="rms")),
    "Transformer, ε outside the root": Family(transformer(norm="layer-outside")),
    "Transformer, SwiGLU": Family(transformer(activation="swiglu")),
    "Transformer, GeGLU": Family(transformer(activation="geglu")),
    "Transformer, ReGLU": Family(transformer(activation="reglu")),
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
