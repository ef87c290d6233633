"""Speed on this machine, ours and the peers' in one run: `make bench` writes results/bench.json and results/bench.md.

python -m benchmarks.run [--only training,decoding] [--work .bench]
Needs REGARD_DATA (for multi30k). The first run makes the environments of the peers and trains the model that all of
them decode with, which takes half an hour; both stay in the work folder.

--quick measures a tiny model in seconds, to see that the benchmark works; its figures mean nothing (bench-quick.json).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import decoding, growth, lengths, memory, profile, startup, training
from benchmarks.corpus import Corpus, corpus
from benchmarks.decoding import TestSet
from benchmarks.results import RESULTS, ROOT, Result, page, write
from benchmarks.shape import FULL, QUICK, Shape
from benchmarks.stage import say
from regard.files import MANIFEST
from regard.recipe.folder import read_model

# What `regard train` takes for image captions, for the model that everybody decodes with.
LEARNING = ("training.optimiser=muon", "training.learning_rate=0.003", "training.schedule=linear", "training.ema=0.995")
MINUTES = 20


@dataclass(frozen=True)
class Bench:
    """One run: the shape, and the folder where peers, text and model are kept."""

    shape: Shape
    work: Path

    @property
    def quick(self) -> bool:
        return not self.shape.real

    def text(self) -> Corpus:
        say("preparing the text ...")
        return corpus(self.shape, self.work / "text")

    def model(self) -> Path:
        """A model of this shape, trained once by `regard train`."""
        folder = self.work / "model"
        if (folder / MANIFEST).exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        long = ["--steps", "4"] if self.quick else ["--budget", f"{MINUTES}m"]
        say("training the model that everybody decodes with ...")
        recipe = str(self.text().folder / "recipe.yaml")
        command = [sys.executable, "-m", "regard", "train", recipe, "--out", str(folder), *long]
        settings = [word for setting in LEARNING for word in ("--set", setting)]
        subprocess.run([*command, *settings, *(["--quiet"] if self.quick else [])], check=True, cwd=ROOT)
        return folder

    # ------------------------------------------------------------ the sections
    def training(self) -> dict[str, float]:
        shutil.rmtree(self.work / "training", ignore_errors=True)
        names = (training.LIMIT, training.OURS, "torch.nn.Transformer") if self.quick else training.EVERYBODY
        return training.measure(self.shape, self.text(), self.work, names)

    def decoding(self) -> dict[str, float]:
        folder, found = read_model(self.model()), self.text()
        test = TestSet(folder, found.raw("test.source"), found.raw("test.target"))
        names = (decoding.OURS,) if self.quick else decoding.EVERYBODY
        return decoding.measure(self.shape, test, self.work, names)

    def growth(self) -> dict[str, float]:
        return growth.measure(lengths.QUICK if self.quick else lengths.FULL)

    def memory(self) -> dict[str, float]:
        return memory.measure(memory.QUICK if self.quick else memory.FULL)

    def profile(self) -> dict[str, float]:
        return profile.measure(self.shape)

    def startup(self) -> dict[str, float]:
        return startup.measure(self.model(), 1 if self.quick else startup.REPEATS)

    @property
    def sections(self) -> dict[str, Callable[[], dict[str, float]]]:
        return {
            "training": self.training,
            "decoding": self.decoding,
            "startup": self.startup,
            "profile": self.profile,
            "growth": self.growth,
            "memory": self.memory,
        }


SECTIONS = tuple(Bench(QUICK, Path()).sections)


def notes(shape: Shape) -> str:
    o = shape.model
    text = "Multi30k en-de" if shape.real else "made-up words"
    return (
        f"Transformer of {o.encoder_layers}+{o.decoder_layers} layers, width {o.width}, feed-forward {o.feedforward}, "
        f"{o.heads} heads, joint vocabulary {shape.vocabulary:,}, dropout {o.dropout}, on {text}. Every peer is a "
        "process in its own environment with all cores; they take turns, in an order that alternates, and while one "
        f"computes the others sleep. Medians of {shape.repeats} rounds after those that warm up; a ratio is the median "
        "over the rounds of the quotient within a round. "
        f"Training: turns of {shape.steps} steps, AdamW, smoothing 0.1, {shape.batch_tokens:,} tokens a batch, real "
        "target tokens with the end token, no padding. Eole and JoeyNMT run their own trainers and batches, Regard is "
        "`regard train`; MarianMT and torch.nn.Transformer run in a plain loop over batches sorted by length. "
        "Limit: float32 products in torch, of the size with the best median, in the turn next to ours; useful "
        "operations are those of the matrix products of real tokens, forward once and backward twice. "
        "Decoding: one trained model, carried over to CTranslate2 by `regard export` and to transformers' Pegasus (the "
        "pre-norm twin of MarianMT; log p of tokens agree to 1e-4); length penalty 1, and a search ends when as many "
        "hypotheses as the beam is wide have finished, as CTranslate2's does (`decoding.patience: 1`). Everybody is "
        "timed from text to text. W×T is W workers with T threads each: a first round finds the better form of each "
        "peer. One sentence: in turns, one by one; CTranslate2 with all threads and with one."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tiny model, in seconds; the figures mean nothing")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="measure these parts")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    parser.add_argument("--work", type=Path, default=ROOT / ".bench", help="folder of peers, text and model")
    chosen = parser.parse_args(arguments)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory())) if chosen.quick else chosen.work.absolute()
        bench = Bench(QUICK if chosen.quick else FULL, work)
        name = "bench-quick" if chosen.quick else "bench"
        figures: dict[str, float] = {}
        began = time.perf_counter()
        for section in chosen.only:
            say(f"{section} ({(time.perf_counter() - began) / 60:.0f} min so far)")
            figures |= bench.sections[section]()
        minutes = (time.perf_counter() - began) / 60
    only = f" --only {' '.join(chosen.only)}" if chosen.only != SECTIONS else ""
    command = f"python -m benchmarks.run{' --quick' if chosen.quick else ''}{only}"
    content = write(name, Result(command, minutes, figures, notes(bench.shape)), chosen.out)
    sys.stdout.write(page(name, content))


if __name__ == "__main__":
    main()
