"""Two systems on one test set: scores and their significance, who wins where, and the sentences that differ most."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher

from regard.evaluation.by_length import Bucket, by_length
from regard.evaluation.scores import check_pairs
from regard.evaluation.significance import METRICS, Difference, Metric, paired, refuse_long, seed, verdict

Runs = list[tuple[str, bool]]


@dataclass(frozen=True)
class Contest:
    """The sentences of one bucket of source lengths: BLEU of both systems, and who has the better chrF how often."""

    a: Bucket
    b: Bucket
    mean_words: float
    wins_a: int
    wins_b: int
    ties: int

    @property
    def name(self) -> str:
        return self.a.name

    def to_json(self) -> dict[str, object]:
        wins = {"wins_a": self.wins_a, "wins_b": self.wins_b, "ties": self.ties}
        scores = {"bleu_a": self.a.bleu, "bleu_b": self.b.bleu, "mean_words": self.mean_words}
        sizes = {"shortest": self.a.shortest, "longest": self.a.longest, "sentences": self.a.sentences}
        return {**sizes, **scores, **wins}


@dataclass(frozen=True)
class SideBySide:
    """One sentence, its reference and both outputs, with the chrF of each. `line` counts from 1."""

    line: int
    source: str
    reference: str
    a: str
    b: str
    chrf_a: float
    chrf_b: float

    @property
    def gain(self) -> float:
        return self.chrf_b - self.chrf_a


@dataclass(frozen=True)
class Comparison:
    """All that `regard compare` tells. `for_a` and `for_b`: the sentences where each is furthest ahead."""

    sentences: int
    identical: int
    seed: int
    differences: tuple[Difference, ...]
    contests: tuple[Contest, ...]
    for_a: tuple[SideBySide, ...]
    for_b: tuple[SideBySide, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "sentences": self.sentences,
            "identical": self.identical,
            "seed": self.seed,
            "metrics": [{**one.to_json(), "verdict": verdict(one)} for one in self.differences],
            "by_length": [contest.to_json() for contest in self.contests],
            "for_a": [asdict(one) for one in self.for_a],
            "for_b": [asdict(one) for one in self.for_b],
        }


@dataclass(frozen=True)
class Texts:
    """Line n of each is the same sentence: the source, its reference, and what A and B made of it."""

    sources: Sequence[str]
    references: Sequence[str]
    a: Sequence[str]
    b: Sequence[str]


def compare(texts: Texts, metrics: Sequence[Metric] = METRICS, examples: int = 5) -> Comparison:
    """The whole comparison; at most `examples` sentences for each side."""
    rows = side_by_side(texts)
    if "ter" in metrics:  # said before the other scores take their time
        refuse_long(texts.a, texts.b, texts.references)
    return Comparison(
        sentences=len(rows),
        identical=sum(row.a == row.b for row in rows),
        seed=seed(),
        differences=tuple(paired(texts.a, texts.b, texts.references, metric) for metric in metrics),
        contests=tuple(contests(texts, rows)),
        for_a=most([row for row in rows if row.gain < 0], examples),
        for_b=most([row for row in rows if row.gain > 0], examples),
    )


def side_by_side(texts: Texts) -> list[SideBySide]:
    """Every sentence with the chrF of both outputs: BLEU of one short sentence is mostly 0, chrF never idle."""
    from sacrebleu.metrics.chrf import CHRF

    check_pairs(texts.a, texts.references)
    check_pairs(texts.b, texts.references)
    measure = CHRF()
    rows = []
    for line, (source, reference, a, b) in enumerate(
        zip(texts.sources, texts.references, texts.a, texts.b, strict=True), 1
    ):
        ours, theirs = (float(measure.sentence_score(text, [reference]).score) for text in (a, b))
        rows.append(SideBySide(line, source, reference, a, b, ours, theirs))
    return rows


def most(rows: Sequence[SideBySide], count: int) -> tuple[SideBySide, ...]:
    """Those with the largest difference of chrF, largest first; equal ones in the order of the file."""
    return tuple(sorted(rows, key=lambda row: -abs(row.gain))[:count])


def contests(texts: Texts, rows: Sequence[SideBySide]) -> list[Contest]:
    """Wins, losses and ties by sentence chrF in each bucket of source words, shortest first."""
    ours = by_length(texts.sources, texts.a, texts.references)
    theirs = by_length(texts.sources, texts.b, texts.references)
    words = [len(source.split()) for source in texts.sources]
    found = []
    for a, b in zip(ours, theirs, strict=True):
        inside = [i for i, n in enumerate(words) if a.shortest <= n and (a.longest is None or n <= a.longest)]
        gains = [rows[i].gain for i in inside]
        mean = sum(words[i] for i in inside) / len(inside)
        wins_a, wins_b = sum(gain < 0 for gain in gains), sum(gain > 0 for gain in gains)
        found.append(Contest(a, b, mean, wins_a, wins_b, len(inside) - wins_a - wins_b))
    return found


def word_differences(a: str, b: str) -> tuple[Runs, Runs]:
    """Both texts in runs of words; False marks what they have in common, in order, True what only one has."""
    words_a, words_b = a.split(), b.split()
    ours: Runs = []
    theirs: Runs = []
    for kind, a_start, a_end, b_start, b_end in SequenceMatcher(None, words_a, words_b, autojunk=False).get_opcodes():
        for runs, words in ((ours, words_a[a_start:a_end]), (theirs, words_b[b_start:b_end])):
            if words:
                runs.append((" ".join(words), kind != "equal"))
    return ours, theirs
