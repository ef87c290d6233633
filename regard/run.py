"""A training run from files to a finished model directory: read, cut, build, learn, score, write."""

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.card import write_card
from regard.engine import TorchEngine, load
from regard.errors import DataError, ModelFormatError, RecipeError, TrainingError
from regard.files import MANIFEST, manifest, write_folder, write_manifest
from regard.jobs.interface import Prepared, Verdict
from regard.jobs.table import job
from regard.recipe.folder import DATA, FILM, LOG, RECIPE, Lexicon, read_recipe, write_recipe, write_weights
from regard.recipe.presets import choose
from regard.recipe.recipe import Recipe, Tree, overlay, parse
from regard.recipe.starting import Start, gentler, noted, open_start, refuse_unlike, start_again, start_from
from regard.report import write_report
from regard.request import Request, text_of
from regard.training.console import Console
from regard.training.crew import shares
from regard.training.events import Event, Finished, Stopped
from regard.training.film import Film
from regard.training.logs import JsonLog, Reader, TensorBoardLog
from regard.training.loop import train as run_loop
from regard.training.options import TrainingOptions
from regard.training.signals import stop_on_signal

LENGTHS = ("steps", "epochs", "budget")  # of training: one of them says how long


@dataclass(frozen=True)
class Outcome:
    folder: Path
    interrupted: bool


def run(request: Request) -> Outcome:
    """Start or resume a run and see it to its end; an error before the first step leaves no trace on disk."""
    started = time.monotonic()
    request.refuse_contradictions()
    if sys.stderr.isatty():  # a program that reads stderr wants an error to stand alone
        request.say("reading the text and learning its vocabulary ...")
    folder, prepared = reopen(request.resume) if request.resume else begin(request)
    try:
        events = list(follow(prepared, folder, request, started))
    except Exception:
        if not any((folder / "checkpoints").glob("step-*")) and not request.resume:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finished = [event for event in events if isinstance(event, Finished)]
    if not finished:
        return Outcome(folder, interrupted=True)
    request.say("scoring the validation data ...")
    verdict = finish(prepared, folder, finished[-1])
    request.say(f"{verdict.summary}; the model and its card are in {folder}")
    return Outcome(folder, interrupted=False)


def where(request: Request) -> str:
    """What an error in the recipe is about."""
    return str(request.recipe or "recipe")


def foreseen(request: Request) -> Recipe:
    """The recipe before any text is read, without the sizes that follow from it: what is wrong is said at once."""
    request.refuse_contradictions()
    tree = choose([], request.preset) if request.preset else {"data": {}}
    return parse(beneath(tree, request.tree()), where(request))


def beneath(chosen: Tree, asked: Tree) -> Tree:
    """A preset with what was asked over it; a length that was asked for takes the place of the preset's."""
    training = asked.get("training") or {}
    if any(training.get(name) is not None for name in LENGTHS):
        asked = overlay(asked, {"training": {name: training.get(name) for name in LENGTHS}})
    return overlay(chosen, asked)


def begin(request: Request) -> tuple[Path, Prepared]:
    """Read and check everything, then make the directory with recipe, tokenisers and data report."""
    recipe = foreseen(request)
    folder = destination(request, recipe)
    start = start_of(request, recipe)
    task = job(recipe)
    loaded = task.load(recipe)
    recipe = settled(request, recipe, loaded)
    # What the numbers of a run depend on is kept with it, lest another machine resume it with others.
    training = recipe.training.model_copy(update={"shares": shares(recipe.training)})
    recipe = recipe.model_copy(update={"training": training})
    lexicon = task.learn(recipe, loaded) if request.lender is None else borrow(request.lender, recipe)
    prepared = task.prepare(recipe, loaded, lexicon)
    note = {}
    if start:
        start_from(prepared.model, recipe, prepared.lexicon, start)
        note = {"start": noted(start)}

    def fill(fresh: Path) -> None:
        write_recipe(fresh, prepared.recipe, prepared.lexicon)
        began = {"files": manifest(fresh), "text": prepared.text}
        data = {**prepared.report.to_json(), **note, "began_with": began}
        (fresh / DATA).write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    write_folder(folder, fill)
    return folder, prepared


def start_of(request: Request, recipe: Recipe) -> Start | None:
    """The model that the run begins with, found to be one that it can begin with."""
    if request.start is None:
        return None
    start = open_start(request.start, recipe.task.kind)
    refuse_unlike(recipe, start)
    return start


def settled(request: Request, recipe: Recipe, loaded: Any) -> Recipe:
    """The recipe with the sizes that follow from the text, where nobody wrote it.

    One that cannot be is refused now, not after the minutes that a vocabulary may take. A model that the run begins
    with is as large as it is: its rate and batches are those for the text, however long the run.
    """
    task = job(recipe)
    if request.recipe is None:
        fixed = recipe.model_copy(update={"training": TrainingOptions()}) if request.start else recipe
        chosen = task.choose(loaded, request.preset or recipe.model.kind, fixed)
        recipe = parse(beneath(gentler(chosen) if request.start else chosen, request.tree()), where(request))
    task.refuse_impossible(recipe)
    return recipe


def destination(request: Request, recipe: Recipe) -> Path:
    """Where the model goes; refused where there is nothing to learn from or something stands in the way."""
    data = recipe.data
    if not (data.corpora or data.texts or data.labelled or data.images or data.trees):
        raise RecipeError(
            "nothing to learn from; give --source and --target, --tsv, --jsonl, --text, --labelled, --images, --trees "
            "or a recipe with data.corpora (or texts, labelled, images, trees), or try: regard demo --out demo"
        )
    if request.out is None:
        raise RecipeError("--out: say where the model goes, for example --out models/en-de")
    if request.out.exists():
        raise RecipeError(
            f"{request.out}: already exists; choose another --out, or go on with: regard train --resume {request.out}"
        )
    return request.out


def reopen(folder: Path) -> tuple[Path, Prepared]:
    """The interrupted run in this directory.

    Recipe, tokenisers and text must be those it began with: its checkpoints mean nothing to others, and only then does
    it end with the weights of an uninterrupted run. Whatever has changed is refused by name.
    """
    if not (folder / RECIPE).is_file():
        raise TrainingError(f"{folder}: no run to resume, there is no {RECIPE} in it; check the path")
    if (folder / MANIFEST).exists():
        raise TrainingError(f"{folder}: this run is finished; there is nothing to resume")
    files, text = beginning(folder)
    found = manifest(folder)
    for name, digest in files.items():
        if found.get(name) != digest:
            raise TrainingError(f"{folder / name}: changed since this run began; put it back, or start a new run")
    recipe = read_recipe(folder)
    task = job(recipe)
    prepared = task.prepare(recipe, task.load(recipe), task.read(folder, recipe))
    if prepared.text != text:
        names = ", ".join(map(str, recipe.data.files))
        raise DataError(f"{folder}: began with another text than {names} hold now; put it back, or start a new run")
    note = json.loads((folder / DATA).read_bytes()).get("start")
    if note and not any((folder / "checkpoints").glob("step-*")):  # a checkpoint would hold every weight
        start_again(prepared.model, recipe, prepared.lexicon, note)
    return folder, prepared


def beginning(folder: Path) -> tuple[dict[str, str], str]:
    """What `begin` noted in data.json: the checksums of recipe and tokenisers, the fingerprint of the text."""
    try:
        noted = json.loads((folder / DATA).read_bytes())["began_with"]
        return dict(noted["files"]), str(noted["text"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelFormatError(
            f"{folder / DATA}: missing or damaged, so this run cannot go on; start a new run"
        ) from None


def borrow(lender: Path, recipe: Recipe) -> Lexicon:
    """The vocabularies of another model; a recipe that asks for others is refused."""
    for name, value in text_of(lender).items():
        if getattr(recipe.text, name) != value:
            raise RecipeError(
                f"text.{name}: {getattr(recipe.text, name)}, but the vocabulary of {lender} has {value}; "
                "leave out one of the two"
            )
    lexicon: Lexicon = job(recipe).read(lender, recipe)
    return lexicon


def follow(prepared: Prepared, folder: Path, request: Request, started: float) -> Iterator[Event]:
    """Run the loop under the signal handlers and hand every event to every reader; yields the events that end it."""
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(stop_on_signal())
        readers: list[Reader] = [stack.enter_context(JsonLog(folder / LOG))]
        if request.tensorboard:
            readers.append(stack.enter_context(TensorBoardLog(folder / "tensorboard")))
        if prepared.film:
            readers.append(Film(folder / FILM, prepared.model, prepared.film))
        if not request.quiet:
            readers.append(stack.enter_context(Console(prepared.report.lines())))
        loop = run_loop(
            prepared.model,
            prepared.task,
            prepared.recipe.training,
            folder=folder,
            width=prepared.recipe.model.width,
            stop=stop,
            started=started,
        )
        for event in loop:
            for reader in readers:
                reader.read(event)
            if isinstance(event, Finished | Stopped):
                yield event


def finish(prepared: Prepared, folder: Path, finished: Finished) -> Verdict:
    """Score the final weights, and make the directory a model.

    The manifest comes last: a run killed before that is not finished, and can be resumed.
    """
    verdict = job(prepared.recipe).judge(prepared, folder, finished)
    write_card(folder, prepared, verdict, finished)
    write_report(folder, prepared, verdict, finished)
    write_weights(folder, prepared.model)
    facts = {"steps": finished.steps, "seconds": round(finished.seconds, 1)}
    write_manifest(folder, {**verdict.facts, **facts})
    return verdict


def train(
    source: str | Path | None = None,
    target: str | Path | None = None,
    *,
    out: str | Path,
    recipe: str | Path | None = None,
    preset: str | None = None,
    settings: Sequence[str] = (),
) -> TorchEngine:
    """Train from two files or a recipe and return the engine of the finished model.

    `preset` is a name of the line-up, such as "gnmt"; `settings` change the recipe: ["training.budget=20m",
    "model.heads=8"]. The files are as for `regard train`.
    """

    def path(value: str | Path | None) -> Path | None:
        return None if value is None else Path(value)

    request = Request(
        recipe=path(recipe),
        preset=preset,
        source=path(source),
        target=path(target),
        out=Path(out),
        settings=settings,
        quiet=True,
    )
    if run(request).interrupted:
        raise TrainingError(f"{out}: interrupted; go on with: regard train --resume {out}")
    return load(out)
