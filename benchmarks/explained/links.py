"""Alignment error of attention against gold links: the best head, the mean of all, and a head that was taught.

Beside them stands eflomal, an aligner that is no translator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.explained.aligners import Aligners, aligners
from benchmarks.family.bench import Bench
from regard.aligner import load_aligner
from regard.data.alignment import read_gold
from regard.data.pairs import Pair
from regard.data.readers import read_parallel
from regard.evaluation.alignment import AlignmentScore, Gold, Links, score_links
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
    """A folder NAME-ONE-OTHER of test.ONE, test.OTHER and gold.talp, whose links go from the language named first.

    In lower case, as most of the sets are.
    """
    first, second = (source, target) if f"-{source}-{target}" in f"-{folder.name}" else (target, source)
    read = read_parallel(folder / f"test.{first}", folder / f"test.{second}")
    pairs = [Pair(pair.source.lower(), pair.target.lower()) for pair in read]
    gold = read_gold(folder / "gold.talp", pairs)
    if first != source:
        pairs, gold = [Pair(pair.target, pair.source) for pair in pairs], [one.turned() for one in gold]
    return Known(folder.name, pairs, gold)


def figures(bench: Bench, gold: Sequence[tuple[str, str, Sequence[str]]]) -> dict[str, float]:
    """For each (source, target, names of gold sets): the error of every set, and of those of the first together."""
    found: dict[str, float] = {}
    for source, target, names in gold:
        sets = [read_known(bench.data / "wordalign" / name, source, target) for name in names]
        trained = aligners(bench, source, target, [pair for known in sets for pair in known.pairs])
        some = compared(trained, sets)
        found |= {name: value for name, value in some.items() if not found or ": " in name}
    return found


def compared(trained: Aligners, sets: Sequence[Known]) -> dict[str, float]:
    """Over the second halves of all sets together; the best head is chosen for each set by its first half."""
    plain, guided = load_aligner(trained.plain), load_aligner(trained.guided)
    totals: dict[str, AlignmentScore] = {}
    found, start = {}, 0
    for known in sets:
        ranked = plain.rank(known.pairs[: known.half], known.gold[: known.half])
        best = next(look for look, _ in ranked if look.head is not None)
        rest = known.pairs[known.half :]
        rows = {
            "best_head": plain.align(rest, best),
            "average": plain.align(rest, Look()),
            "guided": guided.align(rest, guided.look),
            "eflomal": trained.eflomal[start + known.half : start + len(known.pairs)],
        }
        start += len(known.pairs)
        for row, links in rows.items():
            score = scored(links, known)
            totals[row] = totals.get(row, AlignmentScore()) + score
            found[f"{known.name}: {row}"] = score.aer
        chosen = {"layer of the best head": best.layer, "its number": best.head, "at reading": best.step == "reading"}
        found |= {f"{known.name}: {name}": float(value or 0) for name, value in chosen.items()}
    return {f"aer_{row}": score.aer for row, score in totals.items()} | found


def scored(links: Sequence[Links], known: Known) -> AlignmentScore:
    """Of the links of the second half."""
    pairs = zip(links, known.gold[known.half :], strict=True)
    return sum((score_links(one, gold) for one, gold in pairs), AlignmentScore())
