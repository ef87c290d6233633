"""Rows that should each beat the one before, and how likely chance alone would let them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.evaluation.significance import LUCK, paired
from regard.explaining.study_page import Table
from regard.studies.report import TestSet, by_name
from regard.studies.rows import Result


@dataclass(frozen=True)
class Rung:
    """Two rows on the test set: by how much the upper is better, and how likely chance alone does that."""

    lower: str
    upper: str
    gain: float
    bootstrap: float
    randomisation: float

    @property
    def sentence(self) -> str:
        said = "is better than" if self.gain > 0 else "is not better than"
        chance = ", which may be chance" if self.gain > 0 and self.randomisation >= LUCK else ""
        return f"{self.upper} {said} {self.lower}: {self.gain:+.2f} BLEU, p = {self.randomisation:.4f}{chance}"

    def cells(self) -> tuple[str, ...]:
        p = (f"{self.bootstrap:.4f}", f"{self.randomisation:.4f}")
        return (f"{self.upper} over {self.lower}", f"{self.gain:+.2f}", *p)


def rung(lower: Result, upper: Result, test: TestSet) -> Rung:
    found = paired(lower.outputs, upper.outputs, test.references, "bleu")
    return Rung(lower.name, upper.name, found.gain, found.bootstrap.p, found.randomisation.p)


def ladder_of(results: Sequence[Result], names: Sequence[str]) -> list[tuple[Result, Result]]:
    """(lower, upper) of neighbours among these rows, as far as both are there."""
    found = by_name(results)
    return [(found[a], found[b]) for a, b in pairwise(names) if a in found and b in found]


def rung_figures(rungs: Sequence[Rung]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for one in rungs:
        name = f"{one.upper} over {one.lower}"
        figures |= {f"{name}: BLEU": one.gain, f"{name}: p": one.randomisation, f"{name}: p, bootstrap": one.bootstrap}
    return figures


def chances(rungs: Sequence[Rung], order: str) -> Table:
    return Table(
        "Better, or only lucky?",
        ("", "BLEU", "p, bootstrap", "p, randomisation"),
        tuple(one.cells() for one in rungs),
        f"{order} p: how often two equally good models would differ at least as much (sacreBLEU's paired tests).",
    )
