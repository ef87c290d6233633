"""The family at work: language models, images, texts and trees by their recipes, each figure as a user would get it.

python -m benchmarks.variants                                      → results/variants.json and .md
python -m benchmarks.variants --only parse --evalb path/to/evalb   F1 also by the C program EVALB
python -m benchmarks.variants --only vit --budget vit=1m           a quick look; the result says so

Needs REGARD_DATA (for tinyshakespeare, mnist, sentence-polarity, trec-qc, treebank, multi30k). A part that is finished
stays in results/variants/PART.json until its recipe or budget changes, its models in .bench/variants; the same command
goes on where an earlier one ended. The result has all parts that are finished, asked for this time or not.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.family import images, mixture, texts
from benchmarks.family.bench import RECIPES, Bench, Found, checksum, fingerprint, recipe_of
from benchmarks.family.language import gpt, gpt_15m
from benchmarks.family.speed import gpt_speed
from benchmarks.family.trees import parse
from benchmarks.results import RESULTS, ROOT, Result, page, write
from benchmarks.stage import say
from regard.files import write_atomically
from regard.studies.provenance import commit
from regard.training.options import seconds

NAME = "variants"
WORK = ROOT / ".bench" / NAME
Kept = dict[str, Any]  # what is on disk of a finished part


@dataclass(frozen=True)
class Part:
    """What measures, the recipe that it goes by, and the files that are read beside the recipe's."""

    measure: Callable[[Bench], Found]
    recipe: str
    tests: tuple[str, ...] = ()
    trains: bool = True  # for a time that --budget can change
    brackets: bool = False  # which EVALB can count too

    @property
    def path(self) -> Path:
        return RECIPES / f"{self.recipe}.yaml"

    def files(self) -> list[str]:
        """Everything that must lie beneath the data folder."""
        return [*map(str, recipe_of(self.path).data.files), *self.tests]

    def asked(self, bench: Bench) -> dict[str, str | None]:
        """What decides the figures: a finished part stands as long as all of it is as it was."""
        scorer = {"evalb": checksum(bench.evalb)} if self.brackets and bench.evalb else {}
        return {"recipe": fingerprint([self.path]), "budget": bench.budget, **scorer}


PARTS = {
    "gpt": Part(gpt, "tinyshakespeare-nanogpt"),
    "gpt-speed": Part(gpt_speed, "tinyshakespeare-nanogpt", trains=False),
    "gpt-15m": Part(gpt_15m, "tinyshakespeare"),
    "vit": Part(images.vit, "mnist", images.TEST),
    "polarity": Part(texts.polarity, "sentence-polarity", (f"sentence-polarity/{texts.TEST}",)),
    "trec": Part(texts.trec, "trec-qc", (f"trec-qc/{texts.TEST}",)),
    "parse": Part(parse, "treebank-parse", brackets=True),
    "t5": Part(mixture.t5, "multi30k-trec-t5", mixture.TEST),
}


# ---------------------------------------------------------------- one part
def finish(name: str, part: Part, bench: Bench, kept: Path) -> None:
    """Measures what is not measured yet, and keeps it in a folder."""
    path, asked = kept / f"{name}.json", part.asked(bench)
    if path.exists() and asked.items() <= json.loads(path.read_bytes())["asked"].items():
        say(f"{name}: finished, see {path}")
        return
    say(f"{name} ...")
    found = asdict(part.measure(bench))
    when = {"commit": commit(), "date": datetime.now(UTC).isoformat(timespec="minutes")}
    write_atomically(path, json.dumps({"asked": asked, **when, **found}, indent=1, ensure_ascii=False) + "\n")


# ---------------------------------------------------------------- all parts
def finished(kept: Path) -> dict[str, Kept]:
    """Every part that is on disk, in the order of the table."""
    paths = {name: kept / f"{name}.json" for name in PARTS}
    return {name: json.loads(path.read_bytes()) for name, path in paths.items() if path.exists()}


def result(kept: Mapping[str, Kept]) -> Result:
    figures = {key: value for one in kept.values() for key, value in one["figures"].items()}
    minutes = sum(one["minutes"] for one in kept.values())
    return Result(command(kept), minutes, figures, notes(kept))


def command(kept: Mapping[str, Kept]) -> str:
    """What measures these parts anew."""
    words = ["python -m benchmarks.variants"]
    words += ["--only", *kept] if len(kept) < len(PARTS) else []
    budgets = [f"{name}={one['asked']['budget']}" for name, one in kept.items() if one["asked"]["budget"]]
    words += ["--budget", *budgets] if budgets else []
    words += ["--evalb", "evalb"] if any("evalb" in one["asked"] for one in kept.values()) else []
    return " ".join(words)


def notes(kept: Mapping[str, Kept]) -> str:
    """A paragraph for all, a line for each part, and what is missing."""
    lines = [
        "Every model was trained and tested by the commands that a user types, with one seed; no choice was made by a "
        "test set. Minutes are those of training alone (of the turns, where nothing is trained to its end).",
        "",
    ]
    for name, one in kept.items():
        budget = one["asked"]["budget"]
        short = f" A quick look: {budget} for each training, not what the recipe says." if budget else ""
        lines.append(f"- {name} (commit {one['commit']}, {one['date']}): {one['notes']}{short}")
    missing = [name for name in PARTS if name not in kept]
    lines += [f"- not measured: {', '.join(missing)}"] if missing else []
    return "\n".join(lines)


# ---------------------------------------------------------------- the command
def budgets(settings: Sequence[str]) -> dict[str, str]:
    """ "vit=1m" → {"vit": "1m"}; a ValueError says what is wrong with one."""
    found = {}
    for setting in settings:
        name, _, length = setting.partition("=")
        trained = [name for name, part in PARTS.items() if part.trains]
        if name not in trained:
            raise ValueError(f"{setting}: expected PART=TIME, with a part that trains: {', '.join(trained)}")
        seconds(length)
        found[name] = length
    return found


def asked_for(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, dict[str, str]]:
    """The command line, refused before anything is measured if something is wrong or missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.variants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="measure these parts")
    parser.add_argument("--budget", nargs="+", default=[], metavar="PART=TIME", help="for each training of a part")
    parser.add_argument("--evalb", type=Path, metavar="PROGRAM", help="count brackets with this program as well")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files and finished parts")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of models")
    chosen = parser.parse_args(arguments)
    data = Path(os.environ.get("REGARD_DATA", ""))
    for name in (file for part in chosen.only for file in PARTS[part].files()):
        if not (data / name).is_file():
            parser.error(f"REGARD_DATA: {data} does not hold {name}; name the folder that does")
    if chosen.evalb is not None and not chosen.evalb.is_file():
        parser.error(f"--evalb {chosen.evalb}: no such program; check the path, or leave it out")
    try:
        return chosen, budgets(chosen.budget)
    except ValueError as error:
        parser.error(f"--budget {error}")


def main(arguments: Sequence[str] | None = None) -> None:
    chosen, lengths = asked_for(arguments)
    data, work = Path(os.environ["REGARD_DATA"]), chosen.work.absolute()
    evalb = chosen.evalb and chosen.evalb.absolute()
    kept = chosen.out / NAME
    for name in chosen.only:
        finish(name, PARTS[name], Bench(data, work, lengths.get(name), evalb), kept)
    sys.stdout.write(page(NAME, write(NAME, result(finished(kept)), chosen.out)))


if __name__ == "__main__":
    main()
