"""Quality by length of the source: where a model without attention runs out of memory, this shows it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from regard.errors import DataError
from regard.evaluation.scores import bleu, exact_match

BOUNDS = (5, 10, 15, 20, 30, 40, 60)


@dataclass(frozen=True)
class Bucket:
    """The sentences with shortest ≤ source words ≤ longest; the last bucket is open and has no longest."""

    shortest: int
    longest: int | None
    sentences: int
    bleu: float
    exact_match: float

    @property
    def name(self) -> str:
        return f"{self.shortest}+" if self.longest is None else f"{self.shortest}–{self.longest}"

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def by_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], bounds: Sequence[int] = BOUNDS
) -> list[Bucket]:
    """BLEU and exact match of each bucket of source words, shortest first; a bucket without sentences is left out."""
    if not len(sources) == len(hypotheses) == len(references):
        raise DataError(
            f"evaluation: {len(sources)} sources, {len(hypotheses)} hypotheses and {len(references)} references; "
            "give the same number of each"
        )
    if list(bounds) != sorted(set(bounds)):
        raise DataError(f"evaluation: bounds {list(bounds)} do not rise; give each upper bound once, smallest first")
    words = [len(source.split()) for source in sources]
    shortest = [0, *(bound + 1 for bound in bounds)]
    longest = [*bounds, None]
    found = []
    for low, high in zip(shortest, longest, strict=True):
        inside = [i for i, count in enumerate(words) if low <= count and (high is None or count <= high)]
        if inside:
            ours, theirs = [hypotheses[i] for i in inside], [references[i] for i in inside]
            found.append(Bucket(low, high, len(inside), bleu(ours, theirs).score, exact_match(ours, theirs)))
    return found


def table(buckets: Sequence[Bucket]) -> str:
    """The buckets as a Markdown table."""
    lines = ["| source words | sentences | BLEU | exact match % |", "|---|---:|---:|---:|"]
    lines += [f"| {b.name} | {b.sentences} | {b.bleu:.1f} | {b.exact_match:.1f} |" for b in buckets]
    return "\n".join(lines) + "\n"
