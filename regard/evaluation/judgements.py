"""What people said about pairs of outputs: one JSON object a line, the same from a terminal and from a page.

    {"sentence": 17, "source": "A man rides a bike.",
     "left": {"systems": ["small"], "text": "Ein Mann fährt Rad."},
     "right": {"systems": ["large", "old"], "text": "Ein Mann fährt Fahrrad."},
     "verdict": "right", "judge": "anna"}

`sentence` counts from 1; with another `source` it is another sentence. `left` and `right` are as they were shown;
systems that wrote the same text share a side. `verdict` names the better side, or "equal". Outputs that are the same
text need no judge: they are "equal".
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from regard.errors import DataError
from regard.files import write_atomically

Verdict = Literal["left", "right", "equal"]


@dataclass(frozen=True)
class Output:
    """A text and the systems that wrote it."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    systems: Annotated[tuple[str, ...], Field(min_length=1)]
    text: str


@dataclass(frozen=True)
class Question:
    """Two outputs for one sentence, in the order in which they are shown."""

    sentence: int
    source: str
    left: Output
    right: Output

    @property
    def idle(self) -> bool:
        """There is nothing to judge."""
        return self.left.text == self.right.text


@dataclass(frozen=True)
class Judgement:
    """One line of the file."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    sentence: Annotated[int, Field(ge=1)]
    source: str
    left: Output
    right: Output
    verdict: Verdict
    judge: str = ""

    def __post_init__(self) -> None:
        if both := set(self.left.systems) & set(self.right.systems):
            raise ValueError(f"{sorted(both)[0]!r} is on both sides")
        if self.idle and self.verdict != "equal":
            raise ValueError("both sides are the same text, which can only be 'equal'")

    @property
    def about(self) -> tuple[int, str]:
        """The sentence: its number alone would take line 17 of one test set for line 17 of another."""
        return self.sentence, self.source

    @property
    def idle(self) -> bool:
        """Nobody was asked: the texts are the same."""
        return self.left.text == self.right.text

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


LINE = TypeAdapter(Judgement)


def answer(question: Question, verdict: Verdict, judge: str) -> Judgement:
    return Judgement(question.sentence, question.source, question.left, question.right, verdict, judge)


def from_json(line: str | bytes, place: str) -> Judgement:
    """The judgement; `place` is what an error names."""
    try:
        return LINE.validate_json(line)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        what = problem["msg"].removeprefix("Value error, ")
        raise DataError(
            f"{place}: {f'{where}: ' if where else ''}{what}; expected a judgement as regard rank writes it; "
            "repair or remove the line"
        ) from None


def read_judgements(path: Path) -> list[Judgement]:
    """Every judgement of the file, in order."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give the file that regard rank --out wrote") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the file") from None
    return [from_json(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def write_judgements(path: Path, judgements: Sequence[Judgement]) -> None:
    """The whole file at once, so that no crash leaves half a line."""
    write_atomically(path, "".join(f"{one.to_json()}\n" for one in judgements))
