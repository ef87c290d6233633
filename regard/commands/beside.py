"""A student beside its teacher: how good and how fast each is on the same text."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.commands.translate import TranslateRequest, said
from regard.data.pairs import Pair
from regard.evaluation.scores import bleu
from regard.recipe.folder import SHORTLIST, read_recipe

FIRST = 32  # sentences before the clock starts: whatever is made once is made then


@dataclass(frozen=True)
class Way:
    """One way to translate: a model, and how it is asked."""

    name: str
    model: Path
    request: TranslateRequest


@dataclass(frozen=True)
class Standing:
    """What one way gives. Words are those of its outputs, between spaces; seconds are wall time, without loading."""

    name: str
    bleu: float
    words_per_second: float

    def to_json(self) -> dict[str, object]:
        return {name: round(value, 2) if name != "name" else value for name, value in asdict(self).items()}


def ways(teacher: Path, asked: TranslateRequest, student: Path) -> Iterator[Way]:
    """The teacher as it taught, the student with its own beam, and the student as fast as it can be."""
    yield way("teacher", teacher, asked)
    if read_recipe(student).decoding.beam != 1:
        yield way("student", student, TranslateRequest())
    short = (student / SHORTLIST).exists()  # a small vocabulary has none
    yield way("student", student, TranslateRequest(beam=1, shortlist=short))


def way(who: str, model: Path, asked: TranslateRequest) -> Way:
    beam = asked.beam or read_recipe(model).decoding.beam
    return Way(f"{who}, {'shortlist, ' if asked.shortlist else ''}beam {beam}", model, asked)


def standing(one: Way, pairs: Sequence[Pair]) -> Standing:
    engine = one.request.open(one.model)
    sources = [pair.source for pair in pairs]
    said(engine, sources[:FIRST], one.request)
    began = time.perf_counter()
    outputs = said(engine, sources, one.request)
    seconds = time.perf_counter() - began
    score = bleu(outputs, [pair.target for pair in pairs]).score
    return Standing(one.name, score, sum(len(line.split()) for line in outputs) / seconds)


def table(found: Sequence[Standing], sentences: int) -> str:
    """For people: a line each."""
    first = f"validation text, {sentences:,} sentences"
    width = max(len(first), *(len(one.name) for one in found)) + 2
    lines = [f"{first:<{width}}{'BLEU':>7}{'words/s':>11}"]
    lines += [f"{one.name:<{width}}{one.bleu:>7.2f}{one.words_per_second:>11,.0f}" for one in found]
    return "".join(f"{line}\n" for line in lines)
