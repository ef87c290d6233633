"""One row of a study: a model trained under the study's plan, scored once, and kept as DIR/rows/NAME.

The folder is a model directory like any other. `row.json` in it is written last, whole or not at all: a row that has it
is finished, one without it goes on where it stopped. Until then NAME.begun.json beside it tells what row began there.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regard.data.accounts import resolve
from regard.data.corpus import Loaded, load_corpora
from regard.data.examples import encode
from regard.data.readers import read_parallel
from regard.engine import TorchEngine, load
from regard.errors import DataError, RecipeError
from regard.evaluation.scores import evaluate
from regard.files import MANIFEST, check_manifest, write_atomically
from regard.layers.loss import perplexity
from regard.models.interface import parameters
from regard.recipe.folder import LOG
from regard.recipe.recipe import Recipe, parse
from regard.request import Request
from regard.run import run
from regard.studies.flops import Cost
from regard.studies.provenance import commit, machine
from regard.training.events import Finished
from regard.training.logs import read_log
from regard.training.options import TrainingOptions
from regard.workers import Workers, cores

ROWS, ROW, PLAN = "rows", "row.json", "plan.json"
BUDGET = "8m"  # of each row, if nobody says
MANY = 1000  # lines from which on processes that translate save more time than they take to start

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """A preset of the line-up and what is changed in it; `name` is also the folder's."""

    name: str
    preset: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Texts:
    """Parallel files to learn from, to choose by and to be tested on."""

    source: Path
    target: Path
    valid_source: Path
    valid_target: Path
    test_source: Path
    test_target: Path


MULTI30K = Texts(
    *(Path(f"multi30k/{name}.{side}.gz") for name in ("train", "val", "test_2016_flickr") for side in ("en", "de"))
)


@dataclass(frozen=True)
class Plan:
    """What all rows have in common. `settings` lie over the presets, and a row's own over them."""

    texts: Texts
    budget: str | None = BUDGET
    steps: int | None = None
    seed: int = 1
    settings: tuple[str, ...] = ()

    @property
    def length(self) -> str:
        return self.budget or f"{self.steps} step{'' if self.steps == 1 else 's'}"

    def request(self, row: Row, out: Path, *, quiet: bool) -> Request:
        texts = self.texts
        return Request(
            preset=row.preset,
            source=texts.source,
            target=texts.target,
            valid_source=texts.valid_source,
            valid_target=texts.valid_target,
            out=out,
            budget=self.budget,
            steps=self.steps,
            seed=self.seed,
            settings=(*self.settings, *row.settings),
            quiet=quiet,
        )

    def to_json(self) -> dict[str, Any]:
        """Everything that decides what a row learns, the texts by their content."""
        digests = {f.name: digest(resolve(getattr(self.texts, f.name))) for f in fields(self.texts)}
        return {"texts": digests, **{f.name: getattr(self, f.name) for f in fields(self) if f.name != "texts"}}


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Result:
    """What is known of a finished row. The texts in `outputs` are those of the test set, scored once, at the end."""

    name: str
    settings: tuple[str, ...]
    parameters: int
    optimiser: str  # with its learning rates
    steps: int
    epochs: float
    train_minutes: float
    minutes: float  # with scoring
    flops: float  # of training, by formula
    dev_perplexity: float
    dev_bleu: float
    test_bleu: float
    test_chrf: float
    beam: int
    signature: str
    date: str
    outputs: tuple[str, ...]
    commit: str = "unknown"  # of the code that began to train it
    machine: str = "unknown"

    @property
    def sentence(self) -> str:
        return f"{self.name}: dev PPL {self.dev_perplexity:.2f}, dev BLEU {self.dev_bleu:.2f}"

    def figures(self) -> dict[str, float]:
        """Its numbers under the names that a results file has."""
        return {
            "dev PPL": self.dev_perplexity,
            "dev BLEU": self.dev_bleu,
            "test BLEU": self.test_bleu,
            "test chrF": self.test_chrf,
            "parameters": float(self.parameters),
            "training FLOPs": self.flops,
            "steps": float(self.steps),
            "epochs": self.epochs,
            "train minutes": self.train_minutes,
        }


def read_result(folder: Path) -> Result:
    path = folder / ROW
    try:
        content = json.loads(path.read_bytes())
        lists = {name: tuple(content[name]) for name in ("settings", "outputs")}
        return Result(**{**content, **lists})
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{path}: damaged; remove it, and the same command scores the row again") from None


def agree(out: Path, plan: Mapping[str, Any]) -> None:
    """Notes the plan in a fresh folder; where rows are there already, refuses a plan that is not theirs."""
    path = out / PLAN
    if not path.exists() or not any((out / ROWS).glob("*/")):  # a plan that no row began with binds nobody
        if not path.exists() and out.exists() and any(out.iterdir()):
            raise RecipeError(f"{out}: already exists, and not from a study; choose another --out")
        write_atomically(path, json.dumps(plan, indent=2) + "\n")
        return
    refuse_other(path, plan)


def refuse_other(path: Path, plan: Mapping[str, Any]) -> None:
    try:
        before = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        raise DataError(f"{path}: damaged, so this study cannot go on; choose another --out") from None
    now = json.loads(json.dumps(plan))
    changed = [f"{name} ({before.get(name)})" for name in now if name != "texts" and before.get(name) != now[name]]
    changed += ["text"] if before.get("texts") != now["texts"] else []
    if changed:
        raise RecipeError(
            f"{path.parent}: its rows began with another {', '.join(changed)}; say the same, or choose another --out"
        )


def finished(row: Row, out: Path) -> Result | None:
    """The row if it is there; one of this name that is another is refused."""
    folder = out / ROWS / row.name
    if not (folder / ROW).exists():
        return None
    found = read_result(folder)
    if found.settings != row.settings:
        raise RecipeError(f"{folder}: is a row with other settings, {found.settings}; choose another --out")
    return found


def finish_row(row: Row, plan: Plan, out: Path, *, quiet: bool) -> Result | None:
    """The finished row, trained and scored as far as it is not yet; none when a signal interrupted it."""
    if found := finished(row, out):
        return found
    folder = out / ROWS / row.name
    note = out / ROWS / f"{row.name}.begun.json"
    began = begun(row, folder, note)
    if not (folder / MANIFEST).exists():
        # An unfinished run is resumed with all that it began with.
        asked = Request(resume=folder, quiet=quiet) if folder.exists() else plan.request(row, folder, quiet=quiet)
        if run(asked).interrupted:
            return None
    result = score(row, plan, folder, began)
    write_atomically(folder / ROW, json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n")
    note.unlink(missing_ok=True)
    return result


def begun(row: Row, folder: Path, note: Path) -> str:
    """The commit at which this row began to learn, now or when it was interrupted; another row there is refused.

    Studies that share a folder may have rows of one name that are not the same.
    """
    if not folder.exists():
        now = commit()
        content = {"preset": row.preset, "settings": row.settings, "commit": now}
        write_atomically(note, json.dumps(content, indent=1) + "\n")
        return now
    if not note.exists():
        return "unknown"
    try:
        found = json.loads(note.read_bytes())
        before, code = (found["preset"], tuple(found["settings"])), str(found["commit"])
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{note}: damaged; remove it, if {folder} is the row {row.name!r} of this study") from None
    if before != (row.preset, row.settings):
        raise RecipeError(f"{folder}: began as another row, {before[0]} with {before[1]}; choose another --out")
    return code


def score(row: Row, plan: Plan, folder: Path, began_at: str) -> Result:
    """Dev figures as the run found them, the test set translated and scored, the operations counted."""
    began = time.monotonic()
    engine, manifest = load(folder), check_manifest(folder)
    assert isinstance(engine, TorchEngine)
    finished = [event for event in read_log(folder / LOG) if isinstance(event, Finished)][-1]
    flops, dev_perplexity = counted(engine, finished.epochs)
    learns = engine.folder.recipe.training
    pairs = list(read_parallel(resolve(plan.texts.test_source), resolve(plan.texts.test_target)))
    outputs = translated(folder, engine, [pair.source for pair in pairs])
    scores = evaluate(outputs, [pair.target for pair in pairs])
    return Result(
        name=row.name,
        settings=row.settings,
        parameters=parameters(engine.folder.model),
        optimiser=rates(learns),
        steps=finished.steps,
        epochs=finished.epochs,
        train_minutes=finished.seconds / 60,
        minutes=(finished.seconds + time.monotonic() - began) / 60,
        flops=flops,
        dev_perplexity=dev_perplexity,
        dev_bleu=manifest["validation"]["bleu"]["score"],
        test_bleu=scores.bleu.score,
        test_chrf=scores.chrf.score,
        beam=engine.search.beam,
        signature=scores.bleu.signature,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        outputs=tuple(outputs),
        commit=began_at,
        machine=machine(learns.threads),
    )


def corpora(plan: Plan) -> tuple[Recipe, Loaded]:
    """What all rows learn from, read as a row reads it; the recipe has no model of theirs."""
    tree = plan.request(Row("", "transformer"), Path(), quiet=True).tree()
    recipe = parse({part: tree[part] for part in ("data", "text", "training") if part in tree}, "study")
    return recipe, load_corpora(recipe.data, plan.seed)


def rates(learns: TrainingOptions) -> str:
    """The optimiser with its learning rate, or with both if it has two: "muon 0.006, rest 0.018"."""
    two = learns.optimiser == "muon" and learns.rest_rate != 1
    rest = f", rest {learns.learning_rate * learns.rest_rate:g}" if two else ""
    return f"{learns.optimiser} {learns.learning_rate:g}{rest}"


def counted(engine: TorchEngine, epochs: float) -> tuple[float, float]:
    """Training FLOPs = epochs · Σ over the training pairs of 3 · forward, and the perplexity of the dev pairs.

    Every pair is gone through once an epoch, so this is the sum over all batches but for the last, partial epoch, of
    which a mean part is taken. Padding is not counted. R-Drop goes through every pair twice.
    """
    recipe, words = engine.folder.recipe, engine.vocabularies
    loaded = load_corpora(recipe.data, recipe.training.seed)
    cost, total = Cost(recipe.model, len(words.target)), 0.0
    for corpus in loaded.corpora:
        examples, _ = encode(corpus.pairs, words.source, words.target, recipe.data.max_tokens)
        total += corpus.weight * cost.epoch((len(e.source) + 1, len(e.target) + 1) for e in examples)
    given = engine.score(loaded.validation)
    mean = -sum(s.log_probability for s in given) / sum(s.tokens for s in given)
    return epochs * total * (2 if recipe.loss.rdrop else 1), perplexity(mean)


def translated(folder: Path, engine: TorchEngine, lines: Sequence[str]) -> list[str]:
    """With the recipe's own search, and as many cores as it learned with."""
    if len(lines) < MANY:
        return engine.write(lines)
    with Workers(folder, engine.folder.recipe.training.threads or cores()) as workers:
        return list(workers.write(lines))
