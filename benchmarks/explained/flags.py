"""How well concerns find outputs that were spoiled on purpose, among the same model's outputs as they are."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.stage import say
from regard.explainer import Asked, TranslationExplainer
from regard.explaining.explanation import Trouble

SEED = 1
Spoil = Callable[[list[str], int, random.Random], str]


@dataclass(frozen=True)
class Case:
    """A source with an output that is as it was, or spoiled so that a concern of this kind should be found."""

    source: str
    output: str
    kind: Trouble | None = None


def of_another(outputs: list[str], place: int, _rng: random.Random) -> str:
    """The output of the next source."""
    return outputs[(place + 1) % len(outputs)]


def cut(outputs: list[str], place: int, _rng: random.Random) -> str:
    """Without the second half of its words, but with its last character if that ends a sentence."""
    words = outputs[place].split()
    kept = " ".join(words[: max(1, len(words) // 2)])
    return kept + (outputs[place][-1] if outputs[place][-1:] in ".!?" else "")


def said_again(outputs: list[str], place: int, rng: random.Random) -> str:
    """With one to three of its words said three times, of which the first is no punctuation."""
    words, length = outputs[place].split(), rng.randint(1, 3)
    start = rng.choice([i for i, word in enumerate(words) if any(map(str.isalnum, word))] or [0])
    return " ".join([*words[:start], *words[start : start + length] * 3, *words[start + length :]])


SPOILED: Mapping[Trouble, Spoil] = {"detached": of_another, "untranslated": cut, "repetition": said_again}


def swapped(outputs: list[str], place: int, rng: random.Random) -> tuple[str, int]:
    """One word of another output in the place of one that is no punctuation, and which place that is."""
    words = outputs[place].split()
    where = rng.choice([i for i, word in enumerate(words) if any(map(str.isalnum, word))] or [0])
    others = [word for word in outputs[(place + 1) % len(outputs)].split() if word not in words] or ["?"]
    return " ".join([*words[:where], rng.choice(others), *words[where + 1 :]]), where


def cases(sources: Sequence[str], outputs: list[str]) -> list[Case]:
    """Each output as it is, and spoiled in one of the ways in turn."""
    rng, kinds = random.Random(SEED), list(SPOILED)
    whole = [Case(source, output) for source, output in zip(sources, outputs, strict=True)]
    spoiled = [
        Case(source, SPOILED[kinds[place % len(kinds)]](outputs, place, rng), kinds[place % len(kinds)])
        for place, source in enumerate(sources)
    ]
    return whole + spoiled


def figures(explainer: TranslationExplainer, sources: Sequence[str]) -> dict[str, float]:
    """A case is flagged if it has a concern of one of the kinds that outputs are spoiled by; `unsure` flags none.

    flag_precision: flagged cases that are spoiled, over all that are flagged; half of all cases are spoiled.
    flag_recall: flagged cases over all that are spoiled. Of each kind: cases that were flagged for just that. `unsure`
    speaks of words: its spoiled outputs have one wrong word each, and are flagged if it names that word.
    """
    outputs = []
    for source in sources:
        (found,) = explainer.explain(source, Asked(alternatives=0))
        assert found.target is not None
        outputs.append(found.target.text)
    flagged: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for number, case in enumerate(cases(sources, outputs), start=1):
        (found,) = explainer.explain(case.source, Asked(target=case.output, alternatives=0, concerns=True))
        said = {concern.kind for concern in found.concerns}
        kinds = said & SPOILED.keys()
        every["spoiled" if case.kind else "whole"] += 1
        flagged["spoiled" if case.kind else "whole"] += bool(kinds)
        if case.kind:
            every[case.kind] += 1
            flagged[case.kind] += case.kind in kinds
        for kind in said if case.kind is None else ():
            flagged[f"whole, {kind}"] += 1
        if number % 50 == 0:
            say(f"  case {number} of {2 * len(sources)}")
    rng = random.Random(SEED)
    for place, source in list(enumerate(sources))[:: len(SPOILED)]:
        output, where = swapped(outputs, place, rng)
        (found,) = explainer.explain(source, Asked(target=output, alternatives=0, concerns=True))
        every["unsure"] += 1
        flagged["unsure"] += any(where in one.target_words for one in found.concerns if one.kind == "unsure")
    rates = {
        "flag_precision": flagged["spoiled"] / max(flagged["spoiled"] + flagged["whole"], 1),
        "flag_recall": flagged["spoiled"] / every["spoiled"],
    }
    for kind in (*SPOILED, "unsure"):
        rates[f"{kind}: spoiled outputs flagged for it"] = flagged[kind] / max(every[kind], 1)
        rates[f"{kind}: whole outputs flagged for it"] = flagged[f"whole, {kind}"] / every["whole"]
    return rates
