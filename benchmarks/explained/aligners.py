"""The models whose attention is read as links: two of the same text, of which one has a head that was taught to align.

The text is Tatoeba's, in lower case and in tokens, as the gold sets are. The head is taught the links that eflomal
(Östling & Tiedemann 2016) finds in it, an aligner of another kind; it also says what it finds in the gold sets, so that
there is something to compare with. None of the gold sets is in the text of the models.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.family.bench import Bench
from benchmarks.peers.environments import interpreter
from benchmarks.quality import moses_lowercased
from benchmarks.stage import say
from regard.data.pairs import Pair
from regard.data.readers import read_lines
from regard.evaluation.alignment import Links, join, parse_links, write_links
from regard.files import write_atomically

BUDGET = "8m"
LONG = {"l'": "le", "d'": "de", "qu'": "que", "j'": "je", "n'": "ne", "s'": "se", "c'": "ce", "m'": "me", "t'": "te"}
MODEL = {"kind": "transformer", "width": 128, "feedforward": 512, "encoder_layers": 3, "decoder_layers": 3}
TRAINING = {"optimiser": "muon", "learning_rate": 0.004, "schedule": "linear", "ema": 0.995, "validations": 0}


@dataclass(frozen=True)
class Aligners:
    """What was found out for one pair of languages: two model directories, and eflomal's links of the gold sets."""

    plain: Path
    guided: Path
    eflomal: list[Links]


@dataclass(frozen=True)
class Text:
    """One side of a corpus as the gold sets are written."""

    data: Path
    language: str

    def lines(self, name: str) -> list[str]:
        found = moses_lowercased(list(read_lines(self.data / f"{name}.{self.language}.gz")), self.language)
        return [expanded(line) for line in found] if self.language == "fr" else found


def expanded(line: str) -> str:
    """Words without their elisions, as the gold set of Hansards has them: "l' an" is "le an"."""
    return " ".join(LONG.get(word, word) for word in line.split(" "))


def aligners(bench: Bench, source: str, target: str, gold: Sequence[Pair]) -> Aligners:
    """Both models, trained once and kept."""
    folder = bench.work / f"alignment-{source}-{target}"
    if not (folder / "train.align").exists():
        prepare(bench, folder, source, target, gold)
    models = [
        bench.train(f"{name}-{source}-{target}", [written_recipe(folder, source, target, name)], BUDGET).folder
        for name in ("plain", "guided")
    ]
    found = [parse_links(line, "eflomal") for line in read_lines(folder / "gold.align")]
    return Aligners(models[0], models[1], found)


def prepare(bench: Bench, folder: Path, source: str, target: str, gold: Sequence[Pair]) -> None:
    """The text of both models, and eflomal's links of it and of the gold pairs."""
    say(f"{source}-{target}: tokens and links of the text ...")
    data = bench.data / "tatoeba" / f"{source}-{target}"
    sides = [Text(data, language).lines("train") for language in (source, target)]
    kept = [(one, other) for one, other in zip(*sides, strict=True) if one and other]
    pairs = [*kept, *((pair.source, pair.target) for pair in gold)]
    for place, language in enumerate((source, target)):
        write_atomically(folder / f"all.{language}", "".join(f"{pair[place]}\n" for pair in pairs))
        write_atomically(folder / f"train.{language}", "".join(f"{pair[place]}\n" for pair in kept))
    program = interpreter("eflomal", bench.work).parent / "eflomal-align"
    ways = {f"-{letter}": folder / f"{letter}.align" for letter in "fr"}
    texts = {"-s": folder / f"all.{source}", "-t": folder / f"all.{target}"}
    subprocess.run([program, *(word for option in (texts | ways).items() for word in option)], check=True)
    found = [
        join(parse_links(one, "eflomal"), parse_links(other, "eflomal"), "grow-diag-final-and")
        for one, other in zip(*map(read_lines, ways.values()), strict=True)
    ]
    lines = [f"{write_links(links)}\n" for links in found]
    write_atomically(folder / "gold.align", "".join(lines[len(kept) :]))
    write_atomically(folder / "train.align", "".join(lines[: len(kept)]))


def written_recipe(folder: Path, source: str, target: str, name: str) -> Path:
    """The recipe of one of the two models; they differ in what one head is told."""
    corpus = {"source": str(folder / f"train.{source}"), "target": str(folder / f"train.{target}")}
    tree = {"model": {**MODEL, "positions": "rotary"}, "training": TRAINING, "text": {"kind": "bpe", "size": 8000}}
    if name == "guided":
        corpus |= {"alignment": str(folder / "train.align")}
        tree |= {"loss": {"guided": 0.05}}
    path = folder / f"{name}.yaml"
    write_atomically(path, yaml.safe_dump({"data": {"batch_tokens": 3000, "corpora": [corpus]}, **tree}))
    return path
