"""Levers of quality that are more than one run: several models as one, the most agreed candidate, made-up pairs.

python -m benchmarks.levers                     → results/levers.json and .md
python -m benchmarks.levers --only ensemble mbr
python -m benchmarks.levers --only distil --budget 12m --set training.threads=1 --teachers 30m

Needs REGARD_DATA (for multi30k). Beside `regard study levers`, which pulls those that are a line of a recipe. Models
are those of `python -m benchmarks.quality`, 30 minutes each if nobody says; what is missing is trained. Models that
make text for others may have learned for another time (--teachers). Everything is judged by the dev set. A part that is
finished stays in results/levers/PART.json, with how long its models learned and where, and the same command goes on
with the others.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks import quality
from benchmarks.quality import Trial
from benchmarks.results import RESULTS, ROOT, Result, content_of, page, write
from benchmarks.stage import say
from regard.data.pairs import Pair
from regard.files import MANIFEST, write_atomically
from regard.recipe.presets import choose
from regard.recipe.recipe import overlay, parse

WORK = ROOT / ".bench" / "levers"
BUDGET = "30m"
SEEDS = (1, 2, 3)
CANDIDATES = "16"  # of which one is chosen
PAIRS = [Pair("a" * 66, "b" * 66)] * 29_000  # as many as Multi30k has, as long as they are on average


@dataclass(frozen=True)
class Bench:
    """Where data and work lie, and the trials whose models are taken.

    What is measured is compared with `there`; `teacher` is of the same direction, `back` goes the other way round.
    """

    data: Path
    work: Path
    there: Trial
    teacher: Trial
    back: Trial

    def model(self, seed: int) -> Path:
        return quality.train_seed(self.there, seed)

    def dev(self, model: Path, *options: str | Path) -> float:
        """BLEU of the dev set."""
        words = ("evaluate", model, *self.there.files("valid"), "--json", *options)
        return float(json.loads(quality.regard(*words))["bleu"]["score"])


Figures = dict[str, float]


def ensemble(bench: Bench) -> Figures:
    """Two and three seeds as one, against the mean of these seeds alone."""
    models = [bench.model(seed) for seed in SEEDS]
    alone = [bench.dev(model) for model in models]
    found = {}
    for count in (2, 3):
        others = [word for model in models[1:count] for word in ("--with", model)]
        found |= compared(f"{count} seeds as one", bench.dev(models[0], *others), statistics.fmean(alone[:count]))
    return found


def mbr(bench: Bench) -> Figures:
    """The most agreed of the candidates of one beam, by each utility, against the best of beam 5."""
    model = bench.model(SEEDS[0])
    alone = bench.dev(model)
    found = {}
    for utility in ("bleu", "chrf"):
        agreed = bench.dev(model, "--mbr", CANDIDATES, "--utility", utility)
        found |= compared(f"the most agreed of {CANDIDATES} by {utility}", agreed, alone)
    return found


def distilled(bench: Bench) -> Figures:
    """The same model again, from the pairs and from what a teacher made of their sources, against one without that."""
    teacher, out = quality.train_seed(bench.teacher, SEEDS[0]), bench.work / "distilled"
    source, target = (bench.data / name for name in bench.there.corpus.train)
    words = ("--source", source, "--target", target, "--keep-original", *bench.there.validation())
    if not (out / "student" / MANIFEST).exists():
        quality.regard("distil", teacher, *words, "--preset", "transformer", *bench.there.changes(), "--out", out)
    found = bench.dev(out / "student")
    return compared("learned from a teacher's translations too", found, bench.dev(bench.model(SEEDS[0])))


def backtranslated(bench: Bench) -> Figures:
    """The same model again, from the pairs and from made-up sources of their targets, against one without these."""
    folder = bench.work / "backtranslated"
    made, recipe, model = folder / "made.tsv", folder / "recipe.yaml", folder / "model"
    source, target = (bench.data / name for name in bench.there.corpus.train)
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        quality.regard("backtranslate", quality.train_seed(bench.back, SEEDS[0]), "--input", target, "--out", made)
    valid = dict(zip(("source", "target"), (str(bench.data / name) for name in bench.there.corpus.valid), strict=True))
    corpora = [{"source": str(source), "target": str(target)}, {"tsv": str(made)}]
    asked = parse({"data": {}, "training": {"budget": bench.there.budget}}, "levers")  # the length of both
    tree = overlay(choose(PAIRS, "transformer", asked), {"data": {"corpora": corpora, "valid": valid}})
    write_atomically(recipe, yaml.safe_dump(tree, sort_keys=False))
    if not (model / MANIFEST).exists():
        words = ("--resume", model) if model.exists() else (recipe, *bench.there.changes(), "--out", model)
        quality.regard("train", *words)
    return compared("learned from made-up sources too", bench.dev(model), bench.dev(bench.model(SEEDS[0])))


def compared(name: str, found: float, without: float) -> Figures:
    return {f"{name}: dev BLEU": found, f"{name}: without": without, f"{name}: gain": found - without}


PARTS: Mapping[str, Callable[[Bench], Figures]] = {
    "ensemble": ensemble,
    "mbr": mbr,
    "distil": distilled,
    "backtranslate": backtranslated,
}
NOTES = (
    "Multi30k, English to German, dev set (val), beam 5, cased sacreBLEU; the test set was not looked at. Every model "
    "is what two files give, seed 1 unless several are named, and learned so long: {lengths}. Several as one: the mean "
    "of their probabilities. Minutes are those of the parts; models that were there already took theirs before. "
    "Made-up pairs stand beside the original ones, and the model has the same time for both."
)


def finish(name: str, bench: Bench, kept: Path) -> None:
    """Measures what is not measured yet, and keeps it in a folder."""
    path = kept / f"{name}.json"
    length = " ".join([str(bench.there.budget), *bench.there.settings])
    asked = ["--budget", str(bench.there.budget), *(w for one in bench.there.settings for w in ("--set", one))]
    if bench.teacher != bench.there:
        length += f", with text by models of {bench.teacher.budget}"
        asked += ["--teachers", str(bench.teacher.budget)]
    command = " ".join(["python -m benchmarks.levers --only", name, *asked])
    if path.exists():
        before = json.loads(path.read_bytes())["command"]
        if before != command:
            raise SystemExit(f"{path}: measured by {before!r}; say the same, or remove it to measure again")
        return
    say(f"{name} ...")
    began = time.perf_counter()
    figures = PARTS[name](bench)
    minutes = (time.perf_counter() - began) / 60
    found = content_of(Result(command, minutes, figures, f"Models learned {length}."))
    write_atomically(path, json.dumps({**found, "length": length}, indent=1, ensure_ascii=False) + "\n")


def finished(kept: Path) -> dict[str, Any]:
    paths = {name: kept / f"{name}.json" for name in PARTS}
    return {name: json.loads(path.read_bytes()) for name, path in paths.items() if path.exists()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.levers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="measure these parts")
    parser.add_argument("--budget", default=BUDGET, help="training time of every model")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="A.B=C")
    parser.add_argument("--teachers", metavar="BUDGET", help="of models that make text for others, if not --budget")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files and finished parts")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of models")
    chosen = parser.parse_args(arguments)
    data = Path(os.environ.get("REGARD_DATA", ""))
    length = chosen.budget, tuple(chosen.settings)
    there = quality.plain("multi30k-en-de", data, *length)
    teacher, back = (
        quality.plain(name, data, *((chosen.teachers,) if chosen.teachers else length))
        for name in ("multi30k-en-de", "multi30k-de-en")
    )
    for name in there.corpus.train:
        if not (data / name).is_file():
            parser.error(f"REGARD_DATA: {data} does not hold {name}; name the folder that does")
    for name in chosen.only:
        finish(name, Bench(data, chosen.work.absolute() / there.name, there, teacher, back), chosen.out / "levers")
    found = finished(chosen.out / "levers")
    commands = "; ".join(part["command"] for part in found.values())
    figures = {key: value for part in found.values() for key, value in part["figures"].items()}
    minutes = sum(part["minutes"] for part in found.values())
    lengths = "; ".join(
        f"{name} {part['length']} ({part['machine']}, {part['commit']})" for name, part in found.items()
    )
    notes = NOTES.format(lengths=lengths)
    sys.stdout.write(page("levers", write("levers", Result(commands, minutes, figures, notes), chosen.out)))


if __name__ == "__main__":
    main()
