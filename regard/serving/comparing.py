"""Two models of one direction, compared blind: who judges sees two outputs and never learns whose they are."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from regard.errors import DataError
from regard.evaluation.judgements import Output, Question, Verdict, answer, read_judgements
from regard.serving.notebook import append
from regard.serving.problems import Problem

OPEN_SECONDS, OPEN_QUESTIONS = 3600.0, 1000  # the oldest go first
VERDICTS: dict[int | None, Verdict] = {0: "left", 1: "right", None: "equal"}


@dataclass(frozen=True)
class Open:
    """Two outputs that wait for somebody's answer, in the order in which they are shown."""

    source: str
    left: Output
    right: Output
    until: float


class Comparisons:
    """Questions by token, and the file of judgements, one a line as `regard rank` writes them.

    `sentence` of a judgement is the place of its source among the different ones of the file.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.clock = path, clock
        self.open: dict[str, Open] = {}
        self.numbers: dict[str, int] = {}
        for one in read_judgements(path) if path.exists() else []:
            if self.numbers.setdefault(one.source, one.sentence) != one.sentence:
                raise DataError(
                    f"{path}: {one.source[:40]!r} has two numbers, {self.numbers[one.source]} and {one.sentence}; "
                    "expected the judgements of one service; choose another file"
                )

    def ask(self, source: str, outputs: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
        """The token by which a question is answered, and two texts in random order; `outputs` are (system, text)."""
        now = self.clock()
        self.open = {token: one for token, one in self.open.items() if one.until > now}
        while len(self.open) >= OPEN_QUESTIONS:
            del self.open[next(iter(self.open))]
        left, right = (Output((system,), text) for system, text in SystemRandom().sample(list(outputs), 2))
        token = secrets.token_urlsafe(24)
        self.open[token] = Open(source, left, right, now + OPEN_SECONDS)
        return token, [left.text, right.text]

    def judge(self, token: str, better: int | None) -> None:
        """Notes which output is better; a token is good for one answer. Equal texts are equal, whatever is said."""
        found = self.open.pop(token, None)
        if found is None or found.until <= self.clock():
            raise Problem(404, "Not found: the token is not known, or was used")
        number = self.numbers.setdefault(found.source, max(self.numbers.values(), default=0) + 1)
        question = Question(number, found.source, found.left, found.right)
        append(self.path, answer(question, "equal" if question.idle else VERDICTS[better], "").to_json())
