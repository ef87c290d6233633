"""`regard distil`: a student learns what a teacher says of the training text. Kim & Rush 2016.

DIR/teacher.txt (the source as the teacher has it)  DIR/distil.json (what it was made from)  DIR/student (a model)
DIR/back.txt (the target as a model of the other direction has it, if there is one)
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.commands.beside import standing, table, ways
from regard.commands.resuming import Work, translate_file
from regard.commands.translate import TranslateRequest, refuse_unheard, search_options
from regard.data.options import FilterRules
from regard.data.readers import read_lines, read_parallel
from regard.errors import DataError, RecipeError
from regard.files import MANIFEST, write_atomically
from regard.jobs.table import job
from regard.recipe.folder import open_finished, read_recipe
from regard.recipe.recipe import Recipe
from regard.request import Request
from regard.run import Outcome, borrow, foreseen, run, settled, start_of

TEXT, BACK, NOTES, STUDENT = "teacher.txt", "back.txt", "distil.json", "student"
PRESET = "fast"  # deep encoder, shallow decoder
LONGEST = FilterRules().max_characters  # of a line worth translating: training would leave longer ones out
LENGTHS = ("budget", "steps", "epochs", "seed")  # of the student's run, handed on as they are
LEARNS = (*LENGTHS, "preset", "start", "settings", "valid_source", "valid_target", "target", "keep_original")


@dataclass(frozen=True)
class DistilRequest:
    """What a user asks of `regard distil`; none: as the teacher's recipe has it, or as a training run would."""

    source: Path
    out: Path
    target: Path | None = None
    keep_original: bool = False
    back: Path | None = None  # a model of the other direction, which makes up sources for the target
    valid_source: Path | None = None
    valid_target: Path | None = None
    beam: int | None = None
    others: tuple[Path, ...] = ()
    shortlist: bool = False
    workers: int | None = None
    preset: str | None = None  # none: the fast one, or what `start` is
    start: Path | None = None  # a model whose weights the student begins with
    budget: str | None = None
    steps: int | None = None
    epochs: float | None = None
    seed: int | None = None
    settings: tuple[str, ...] = ()
    quiet: bool = False

    @property
    def search(self) -> TranslateRequest:
        return replace(self.search_back, others=self.others)

    @property
    def search_back(self) -> TranslateRequest:
        """Those who speak together with the teacher speak its language."""
        return TranslateRequest(beam=self.beam, shortlist=self.shortlist, workers=self.workers, engine="torch")

    @property
    def student(self) -> dict[str, str]:
        """Everything that decides how the student learns, as text."""
        return {name: str(getattr(self, name)) for name in LEARNS}


def distil_model(teacher: Path, request: DistilRequest) -> Outcome:
    """Translate, train and measure what is not yet done; the same command again goes on."""
    refuse_contradictions(request)
    student = request.out / STUDENT
    if (student / MANIFEST).exists():
        notes = agree(teacher, request)
        if "standings" in notes or request.valid_source is None:
            raise RecipeError(f"{student}: is trained already; use it, or choose another --out")
        refuse_other_student(notes, request)
        stand_beside(teacher, request, notes)
        return Outcome(student, interrupted=False)
    refuse_before_hours(teacher, request)
    notes = translate_all(teacher, request, agree(teacher, request))
    if student.exists():
        refuse_other_student(notes, request)
        asked = Request(resume=student, quiet=request.quiet)
    else:
        notes = {**notes, "student": request.student}
        note(request.out / NOTES, notes)
        asked = training(teacher, request)
    outcome = run(asked)
    if not outcome.interrupted:
        stand_beside(teacher, request, notes)
    return outcome


def refuse_contradictions(request: DistilRequest) -> None:
    refuse_unheard(request.search)
    if request.keep_original != (request.target is not None):
        given, missing = ("--target", "--keep-original") if request.target else ("--keep-original", "--target")
        raise RecipeError(f"{given}: given without {missing}; the original pairs need both")
    if request.start and request.preset:
        raise RecipeError(f"--start {request.start}: says itself what the student is; leave out --preset")
    if request.back and request.target is None:
        raise RecipeError("--back: given without --target and --keep-original, the text that it would translate")
    if request.back and request.valid_source is None:
        raise RecipeError(
            "--back: given without --valid-source; validation pairs carved out of this text would be learned from, "
            "with made-up sources: give a text of their own"
        )


def refuse_before_hours(teacher: Path, request: DistilRequest) -> None:
    """Whatever can be known before the hours of translating that are left: a student or a model that cannot be."""
    left = [work for work in works(teacher, request) if not work.whole.exists()]
    if not left:
        return  # the run itself says it now
    refuse_student(training(teacher, request), request)
    for work in left:
        work.search.open(work.model)


def refuse_student(asked: Request, request: DistilRequest) -> None:
    """What the student could not be trained with, as its run would say it."""
    recipe = foreseen(asked)
    for path in (request.source, request.target, request.valid_source, request.valid_target):
        if path is not None and not path.is_file():
            raise DataError(f"{path}: no such file; check the path")
    start_of(asked, recipe)
    recipe = settled(asked, recipe, job(recipe).load(rehearsed(recipe, request)))
    if asked.lender:
        borrow(asked.lender, recipe)


def rehearsed(recipe: Recipe, request: DistilRequest) -> Recipe:
    """The recipe with each text in the place of its translation, which nobody knows yet.

    So it has every pair that there can be: a few more than are learned from, as translations may be empty or lopsided.
    """
    texts = {request.out / TEXT: request.source, request.out / BACK: request.target}

    def known(path: Path | None) -> Path | None:
        return path if path is None else texts.get(path, path)

    corpora = tuple(
        corpus.model_copy(update={"source": known(corpus.source), "target": known(corpus.target)})
        for corpus in recipe.data.corpora
    )
    filters = recipe.data.filters.model_copy(update={"drop_identical": False})
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"corpora": corpora, "filters": filters})})


def stand_beside(teacher: Path, request: DistilRequest, notes: Mapping[str, Any]) -> None:
    """What became of the teacher's quality and speed, on validation text that is nobody's output."""
    if request.valid_source is None or request.valid_target is None:
        return
    student = request.out / STUDENT
    bad_lines = read_recipe(student).data.bad_lines
    pairs = list(read_parallel(request.valid_source, request.valid_target, bad_lines))
    found = [standing(one, pairs) for one in ways(teacher, request.search, student)]
    note(request.out / NOTES, {**notes, "standings": [one.to_json() for one in found]})
    sys.stdout.write(table(found, len(pairs)))


# ---------------------------------------------------------------- what the files were made from
def taught(teacher: Path, request: DistilRequest) -> dict[str, Any]:
    """Everything that decides teacher.txt and back.txt."""
    models = [teacher, *request.others]
    for model in (*models, *([request.back] if request.back else [])):
        open_finished(model)
    search = search_options(read_recipe(teacher).decoding, request.search).model_dump()
    found = {
        "models": [digest(model / MANIFEST) for model in models],
        "source": digest(request.source),
        "search": search,
        "shortlist": request.shortlist,
        "back": None,
    }
    if request.back and request.target:
        asked = search_options(read_recipe(request.back).decoding, request.search_back).model_dump()
        found["back"] = [digest(request.back / MANIFEST), digest(request.target), asked]
    return found


def digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None


def agree(teacher: Path, request: DistilRequest) -> dict[str, Any]:
    """The notes, after they were found to say what is asked for; fresh ones where nothing is made yet."""
    path, now = request.out / NOTES, taught(teacher, request)
    if not path.exists() and request.out.exists() and any(request.out.iterdir()):
        raise RecipeError(f"{request.out}: already exists, and not from distilling; choose another --out")
    if not begun(teacher, request):
        note(path, {"teacher": now})
        return {"teacher": now}
    try:
        notes: dict[str, Any] = json.loads(path.read_bytes())
        before = dict(notes["teacher"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{path}: damaged, so this cannot go on; choose another --out") from None
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        raise RecipeError(
            f"{request.out}: began with another {', '.join(changed)}; put it back, or choose another --out"
        )
    return notes


def begun(teacher: Path, request: DistilRequest) -> bool:
    """Whether anything is made; a file that waits for its first line is nothing."""
    files = [path for work in works(teacher, request) for path in (work.whole, work.partial)]
    return (request.out / STUDENT).exists() or any(path.exists() and path.stat().st_size for path in files)


def note(path: Path, notes: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(notes, indent=2) + "\n")


def refuse_other_student(notes: Mapping[str, Any], request: DistilRequest) -> None:
    before = notes.get("student", {})
    changed = [name for name, value in request.student.items() if before.get(name, str(None)) != value]
    if changed:
        names = ", ".join(f"--{name.replace('_', '-')} ({before.get(name)})" for name in changed)
        raise RecipeError(
            f"{request.out}: its student began with another {names}; say the same, or choose another --out"
        )


# ---------------------------------------------------------------- the teacher's part
def translate_all(teacher: Path, request: DistilRequest, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Makes what is not yet there of teacher.txt and back.txt; the notes then say how long that took in all."""
    began = time.monotonic()
    try:
        for work in works(teacher, request):
            translate_file(work)
    finally:
        notes = {**notes, "seconds": round(notes.get("seconds", 0) + time.monotonic() - began, 1)}
        note(request.out / NOTES, notes)
    return notes


def works(teacher: Path, request: DistilRequest) -> Iterator[Work]:
    """What is to be translated: a line for a line of each text."""

    def work(model: Path, search: TranslateRequest, text: Path, name: str) -> Work:
        return Work(model, search, lambda: map(worth, read_lines(text)), request.out / name, request.quiet)

    yield work(teacher, request.search, request.source, TEXT)
    if request.back and request.target:
        yield work(request.back, request.search_back, request.target, BACK)


def worth(line: str) -> str:
    """The line, or nothing where training would leave the pair out: a blank line costs nothing and stays blank."""
    return line if len(line.strip()) <= LONGEST else ""


# ---------------------------------------------------------------- the student's part
def training(teacher: Path, request: DistilRequest) -> Request:
    """A run on the teacher's words, with its vocabulary: so that both can speak together, and shortlists fit.

    A model to begin with brings its own.
    """
    begins: dict[str, Any] = (
        {"start": request.start} if request.start else {"vocabulary": teacher, "preset": request.preset or PRESET}
    )
    corpora = [{"source": str(request.source), "target": str(request.out / TEXT)}]
    if request.target is not None:
        corpora.append({"source": str(request.source), "target": str(request.target)})
    if request.back:
        corpora.append({"source": str(request.out / BACK), "target": str(request.target)})
    return Request(
        out=request.out / STUDENT,
        valid_source=request.valid_source,
        valid_target=request.valid_target,
        settings=(f"data.corpora={json.dumps(corpora, ensure_ascii=False)}", *request.settings),
        quiet=request.quiet,
        **begins,
        **{name: getattr(request, name) for name in LENGTHS},
    )
