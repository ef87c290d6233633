"""What a model wrote for a few sentences in the course of its training, as HTML."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.evaluation.samples import Sample
from regard.explaining.markup import text


@dataclass(frozen=True)
class Moment:
    """The samples of one validation: always the same sentences in the same order."""

    step: int
    samples: Sequence[Sample]


def samples(course: Sequence[Moment]) -> str:
    """Each sentence with its last output and its reference; behind a click what was written before."""
    said = [moment for moment in course if moment.samples]
    if not said:
        return ""
    cards = "".join(card(said, place) for place in range(len(said[-1].samples)))
    return (
        "<p>Sentences that were not learned from, as the model translates them at its validations.</p>"
        f'<div class="samples">{cards}</div>'
    )


def card(course: Sequence[Moment], place: int) -> str:
    last = course[-1].samples[place]
    now = line(f"step {course[-1].step:,}", last.output, ' class="now"')
    rows = line("source", last.source) + now + line("reference", last.reference)
    before = changes(course, place)[:-1]
    earlier = "".join(line(f"step {step:,}", output) for step, output in before)
    more = f"<details><summary>earlier</summary><dl>{earlier}</dl></details>" if before else ""
    return f'<article class="sample"><dl>{rows}</dl>{more}</article>'


def changes(course: Sequence[Moment], place: int) -> list[tuple[int, str]]:
    """Each output and the step from which on it was written; the last is that of the last moment."""
    found: list[tuple[int, str]] = []
    for moment in course:
        output = moment.samples[place].output if place < len(moment.samples) else ""
        if not found or found[-1][1] != output:
            found.append((moment.step, output))
    return found


def line(name: str, value: str, mark: str = "") -> str:
    return f'<dt>{text(name)}</dt><dd{mark} dir="auto">{text(value) or "–"}</dd>'
