"""What a worker process of the service runs: one model, one thread, a line of JSON in, a line of JSON out.

SIGUSR1 has it give up the question it is at, between two steps of the search: nobody waits for the answer any more.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from io import TextIOBase
from pathlib import Path
from typing import Any

import torch

from regard.aligner import load_aligner
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.documents import ByAttention
from regard.engine import Engine, Translation, load
from regard.errors import DecodingError, RegardError
from regard.explainer import Asked, Explainer, load_explainer
from regard.faithful import Faithful
from regard.serving.asking import Asking, without
from regard.serving.wishes import Explain
from regard.text.placeholders import KINDS, Placeholders

BEHIND = 5  # of the service, which so can refuse and say that it is well while all cores compute
MASKS = 600  # of RISE at most: a person waits for the answer

CHECKED = ("concerns", "dependence", "confidence")  # of an explanation


class Interrupted(Exception):  # noqa: N818
    """Nobody waits any more."""


class Busy:
    """Raises `Interrupted` on a signal, but only within its block: an idle worker has nothing to give up."""

    def __init__(self) -> None:
        self.inside = False

    def __enter__(self) -> None:
        self.inside = True

    def __exit__(self, *_: object) -> None:
        self.inside = False

    def signalled(self, *_: object) -> None:
        if self.inside:
            self.inside = False
            raise Interrupted


@dataclass(frozen=True)
class Model:
    """What answers: the engine, and the same model opened to be looked into, once somebody asks for that.

    (Twice in memory then: what is fastest to decode with is not what can be watched.) `task` stands before every text;
    the engine puts it there by itself.
    """

    path: Path
    engine: Engine
    task: str = ""

    @cached_property
    def explainer(self) -> Explainer:
        return load_explainer(self.path)

    @cached_property
    def align(self) -> ByAttention:
        return ByAttention(self.path)


def main() -> None:
    """Whatever else prints in this process goes to stderr: stdout is for answers."""
    torch.set_num_threads(1)
    os.nice(BEHIND)
    busy = Busy()
    signal.signal(signal.SIGUSR1, busy.signalled)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        path, options = Path(sys.argv[2]), json.loads(sys.argv[3])

        def open_model() -> Model:
            engine = load(path, options["engine"], shortlist=options["shortlist"])
            return Model(path, Asking(engine, options["task"]), options["task"])

        serve(open_model, sys.stdin, answers, busy)


def serve(open_model: Callable[[], Model], questions: Iterable[str], answers: TextIOBase, busy: Busy) -> None:
    """Open the model and say how it searches, then one answer a question until the service is gone."""

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    with suppress(BrokenPipeError):
        try:
            model = open_model()
        except RegardError as error:
            say(refusal(error))
            return
        say({"found": model.engine.search.model_dump()})
        for question in questions:
            try:
                with busy:
                    answer = answer_to(model, json.loads(question))
            except Interrupted:
                answer = {"error": "Interrupted", "message": ""}
            say(answer)


def answer_to(model: Model, question: dict[str, Any]) -> dict[str, Any]:
    """A refusal says why. Of a mistake of ours only its kind is told: its words may hold what somebody wrote."""
    try:
        return {"found": ANSWERS[question["do"]](model, question)}
    except RegardError as error:
        return refusal(error)
    except Interrupted:
        raise
    except Exception as error:
        return {"error": type(error).__name__, "message": ""}


def refusal(error: RegardError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": str(error)}


def held(model: Model, question: dict[str, Any]) -> Engine:
    """The engine that keeps placeholders, and what this question wants kept."""
    return Faithful(model.engine, Placeholders(KINDS, tuple(question["keep"])), question["glossary"])


def write(model: Model, question: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The text of the best translation alone."""
    texts = held(model, question).write(question["texts"], SearchOptions.model_validate(question["search"]))
    return [[{"text": text}] for text in texts]


def translate(model: Model, question: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """All candidates with their scores."""
    search, texts = SearchOptions.model_validate(question["search"]), question["texts"]
    prefix = question["prefix"]
    prefixes = None if prefix is None else [prefix] * len(texts)
    return [candidates(found) for found in held(model, question).translate(texts, search, prefixes)]


def candidates(found: Translation) -> list[dict[str, Any]]:
    return [
        {"text": one.text, "score": one.score, "logProbability": one.log_probability, "tokens": list(one.tokens)}
        for one in found.candidates
    ]


# ---------------------------------------------------------------- about pairs: a text is source and target as JSON
def score(model: Model, question: dict[str, Any]) -> list[dict[str, Any]]:
    """How probable given translations are."""
    found = model.engine.score([Pair(*json.loads(text)) for text in question["texts"]])
    return [
        {"logProbability": one.log_probability, "tokens": one.tokens, "perplexity": one.perplexity} for one in found
    ]


def link(model: Model, question: dict[str, Any]) -> list[list[tuple[int, int]]]:
    """Which words stand for which, by what the model looks at; refused where it looks at nothing."""
    aligner, found = model.align.aligner or load_aligner(model.path), []
    for text in question["texts"]:
        source, target = json.loads(text)
        found.append(without(model.task, aligner.link(Pair(model.task + source, target))))
    return found


def align(model: Model, question: dict[str, Any]) -> list[list[tuple[int, int]]]:
    """Which words stand for which, as tags are to move with them: by place where the model does not say."""
    task = model.task if model.align.aligner else ""  # whose words would push the others aside
    pairs = [Pair(*json.loads(text)) for text in question["texts"]]
    return [without(task, model.align((task + pair.source).split(), pair.target.split())) for pair in pairs]


def check(model: Model, question: dict[str, Any]) -> list[dict[str, Any]]:
    """Why a person should look at given translations, and what was measured; all null where it cannot be checked."""
    found: list[dict[str, Any]] = []
    for text in question["texts"]:
        source, target = json.loads(text)
        try:
            one = explained(model, source, asdict(Explain(target, 1, check=True)))
            found.append({key: one[key] for key in CHECKED})
        except DecodingError:
            found.append(dict.fromkeys(CHECKED))
    return found


# ---------------------------------------------------------------- looking inside
def explain(model: Model, question: dict[str, Any]) -> list[dict[str, Any]]:
    """Of given translations, or of those that the model writes, with their placeholders."""
    given = question["target"]
    return [explained(model, text, {**question, "target": given or mended(model, text)}) for text in question["texts"]]


def mended(model: Model, text: str) -> str | None:
    """The translation that keeps the placeholders, where the model by itself would not; else none."""
    keeping = Faithful(model.engine, Placeholders(KINDS), {})
    (own,) = model.engine.write([text])
    return None if keeping.accepts(text, own) else keeping.write([text])[0]


def explained(model: Model, text: str, wanted: dict[str, Any]) -> dict[str, Any]:
    method = wanted["method"]
    asked = Asked(
        target=wanted["target"],
        alternatives=wanted["alternatives"],
        maps=(method,) if method else (),
        masks=MASKS if method == "rise" else None,
        concerns=wanted["check"],
    )
    found: dict[str, Any] = json.loads(model.explainer.explain(model.task + text, asked)[0].to_json())
    return found


ANSWERS: dict[str, Callable[[Model, dict[str, Any]], Any]] = {
    "write": write,
    "translate": translate,
    "score": score,
    "link": link,
    "align": align,
    "check": check,
    "explain": explain,
}
