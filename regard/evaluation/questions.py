"""Which two outputs to show a person next, so that few questions sort them all.

Every sentence is sorted for itself, by binary insertion, and equal outputs form one group. What was answered is looked
up, so a session is nothing but the judgements so far: it can stop, undo and go on anywhere.
"""

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import TypeVar

from regard.evaluation.judgements import Judgement, Output, Question

T = TypeVar("T")


@dataclass(frozen=True)
class Sheet:
    """One sentence and what each system made of it. `number` counts from 1."""

    number: int
    source: str
    outputs: Mapping[str, str]

    def texts(self) -> list[Output]:
        """The different outputs, each with the systems that wrote it."""
        found: dict[str, list[str]] = {}
        for system, text in self.outputs.items():
            found.setdefault(text, []).append(system)
        return [Output(tuple(systems), text) for text, systems in found.items()]


def most_questions(items: int) -> int:
    """Σ ⌈log₂ k⌉ for k = 2 … items: what binary insertion never exceeds.

    That is 1, 3, 5, 8, 11 for 2 … 6 items; no method can do with fewer than ⌈log₂ items!⌉ = 1, 3, 5, 7, 10.
    """
    return sum(ceil(log2(k)) for k in range(2, items + 1))


def sorting(items: Sequence[T]) -> Generator[tuple[T, T], int, list[list[T]]]:
    """Yields pairs and is sent 1 (the first is better), -1 (the second) or 0 (equal); returns groups, best first.

    Each item is searched for its place among the groups before it, halving them with each answer. So the number of
    questions is bounded whatever the answers, and no answer can contradict an earlier one.
    """
    groups: list[list[T]] = []
    for item in items:
        low, high = 0, len(groups)
        while low < high:
            middle = (low + high) // 2
            verdict = yield item, groups[middle][0]
            if verdict == 0:
                groups[middle].append(item)
                break
            low, high = (low, middle) if verdict > 0 else (middle + 1, high)
        else:
            groups.insert(low, [item])
    return groups


def sample(sentences: int, count: int, seed: int) -> list[int]:
    """`count` of the numbers 0 … sentences - 1 in random order; a larger count begins with the smaller one's."""
    places = list(range(sentences))
    random.Random(seed).shuffle(places)
    return places[:count]


@dataclass(frozen=True)
class Next:
    """The question to ask, in which of the sheets (counted from 0), and how many may follow, itself included."""

    question: Question
    place: int
    at_most: int


def next_question(sheets: Sequence[Sheet], judgements: Sequence[Judgement], judge: str, seed: int) -> Next | None:
    """The first pair that this judge has not judged, sheet by sheet; none when all sheets are sorted.

    A sheet whose outputs are all one text gives an idle question, so that it counts as the tie it is.
    """
    known = {
        (one.sentence, frozenset((one.left.text, one.right.text))): one for one in judgements if one.judge == judge
    }
    found: tuple[Question, int] | None = None
    left = 0
    for place, sheet in enumerate(sheets):
        texts = sheet.texts()
        pair, answered = advance(sheet, texts, known, seed)
        if pair is not None:
            left += most_questions(len(texts)) - answered
            found = found or (arranged(sheet, pair, f"{seed} {judge}"), place)
    return None if found is None else Next(*found, left)


def advance(
    sheet: Sheet, texts: Sequence[Output], known: Mapping[tuple[int, frozenset[str]], Judgement], seed: int
) -> tuple[tuple[Output, Output] | None, int]:
    """The first unknown pair of the sheet, none when it is sorted, and how many were known."""
    if len(texts) == 1:
        systems, text = texts[0].systems, texts[0].text
        judged = (sheet.number, frozenset((text,))) in known
        return (None if judged else (Output(systems[:1], text), Output(systems[1:], text))), 0
    order = sorted(texts, key=lambda output: output.text)
    random.Random(f"order {seed} {sheet.number}").shuffle(order)
    sort, answered = sorting(order), 0
    try:
        pair = next(sort)
        while one := known.get((sheet.number, frozenset((pair[0].text, pair[1].text)))):
            answered += 1
            pair = sort.send(preference(one, pair[0].text))
    except StopIteration:
        return None, answered
    return pair, answered


def preference(judgement: Judgement, text: str) -> int:
    """1 where the text won, -1 where it lost, 0 for equal."""
    if judgement.verdict == "equal":
        return 0
    winner = judgement.left if judgement.verdict == "left" else judgement.right
    return 1 if winner.text == text else -1


def arranged(sheet: Sheet, pair: tuple[Output, Output], key: str) -> Question:
    """The pair in random order, the same whenever it is asked again: nobody learns which side a system is on.

    The key has the judge in it, so that whoever favours one side does not favour the same outputs as the next judge.
    """
    one, other = pair
    texts = f"{one.text}\n{other.text}"
    if random.Random(f"side {key} {sheet.number} {texts}").random() < 0.5:
        one, other = other, one
    return Question(sheet.number, sheet.source, one, other)
