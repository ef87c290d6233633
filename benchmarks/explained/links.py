"""Alignment error of attention against gold links: the best head, the mean of all, and a head that was taught."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.aligner import Aligner, load_aligner
from regard.data.alignment import read_gold
from regard.data.pairs import Pair
from regard.data.readers import read_parallel
from regard.evaluation.alignment import AlignmentScore, Gold, score_links
from regard.explaining.alignment import Look


@dataclass(frozen=True)
class Known:
    """Pairs with gold links: those that a head is chosen by, and those that it is scored by."""

    name: str
    pairs: list[Pair]
    gold: list[Gold]

    @property
    def half(self) -> int:
        return len(self.pairs) // 2


def read_known(folder: Path, source: str, target: str) -> Known:
    """A folder NAME-ONE-OTHER of test.ONE, test.OTHER and gold.talp, whose links go from the language named first."""
    first, second = (source, target) if f"-{source}-{target}" in f"-{folder.name}" else (target, source)
    pairs = list(read_parallel(folder / f"test.{first}", folder / f"test.{second}"))
    gold = read_gold(folder / "gold.talp", pairs)
    if first != source:
        pairs, gold = [Pair(pair.target, pair.source) for pair in pairs], [one.turned() for one in gold]
    return Known(folder.name, pairs, gold)


def figures(model: Path, guided: Path | None, sets: Sequence[Known]) -> dict[str, float]:
    """Over the second halves of all sets together; the best head is chosen for each set by its first half."""
    aligner = load_aligner(model)
    taught = load_aligner(guided) if guided else None
    totals: dict[str, AlignmentScore] = {}
    found = {}
    for known in sets:
        best = aligner.rank(known.pairs[: known.half], known.gold[: known.half])[0][0]
        rows = {"best_head": (aligner, best), "average": (aligner, Look(step=best.step))}
        rows |= {"guided": (taught, taught.look)} if taught else {}
        for row, (who, look) in rows.items():
            score = scored(who, look, known)
            totals[row] = totals.get(row, AlignmentScore()) + score
            found[f"{known.name}: {row}"] = score.aer
    return {f"aer_{row}": score.aer for row, score in totals.items()} | found


def scored(aligner: Aligner, look: Look, known: Known) -> AlignmentScore:
    rest = slice(known.half, None)
    links = aligner.align(known.pairs[rest], look)
    return sum((score_links(one, gold) for one, gold in zip(links, known.gold[rest], strict=True)), AlignmentScore())
