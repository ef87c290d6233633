"""Scores of a translated corpus that others can reproduce: each comes with its sacreBLEU signature."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.errors import DataError

# sacreBLEU is imported by what scores: whoever only translates does not wait for it.
LONGEST_FOR_TER = 150  # words: beyond, TER's search for shifts takes many seconds per line


@dataclass(frozen=True)
class Score:
    """A number and how it was computed."""

    score: float
    signature: str


@dataclass(frozen=True)
class Scores:
    """BLEU (cased, 13a), chrF and TER of a corpus, and the percentage of lines that are right to the letter."""

    bleu: Score
    chrf: Score
    ter: Score
    exact_match: float
    sentences: int

    def named(self) -> list[tuple[str, Score]]:
        """Those that have a signature, as people write their names."""
        return [("BLEU", self.bleu), ("chrF", self.chrf), ("TER", self.ter)]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def check_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"evaluation: {len(hypotheses)} hypotheses for {len(references)} references; give one reference per line"
        )
    if not hypotheses:
        raise DataError("evaluation: 0 hypotheses and 0 references; give at least one line of each")


def measure(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    check_pairs(hypotheses, references)
    found = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(float(found.score), str(metric.get_signature()))  # a signature exists only after scoring


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Cased BLEU with the 13a tokeniser: the one to report. Post 2018."""
    from sacrebleu.metrics.bleu import BLEU

    return measure(BLEU(), hypotheses, references)


def bleu_lowercased(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """BLEU that ignores case, for comparison with systems trained on lowercased text."""
    from sacrebleu.metrics.bleu import BLEU

    return measure(BLEU(lowercase=True), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """F₂ of character 1- to 6-grams. Popović 2015."""
    from sacrebleu.metrics.chrf import CHRF

    return measure(CHRF(), hypotheses, references)


def edits(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions of words that turn one into the other. Levenshtein 1966."""
    row = list(range(len(reference) + 1))
    for i, word in enumerate(hypothesis, 1):
        diagonal, row[0] = row[0], i
        for j, wanted in enumerate(reference, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != wanted))
    return row[-1]


def ter(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Edits, shifts of blocks among them, per 100 words of reference: lower is better. Snover et al. 2006.

    Where hypothesis and reference both exceed LONGEST_FOR_TER words, no shifts are looked for, which can only raise the
    score; the signature then says for how many lines.
    """
    from sacrebleu.metrics.ter import TER

    check_pairs(hypotheses, references)
    pairs = list(zip(hypotheses, references, strict=True))
    long = [(h, r) for h, r in pairs if min(len(h.split()), len(r.split())) > LONGEST_FOR_TER]
    if not long:
        return measure(TER(), hypotheses, references)
    metric = TER()
    rest = [pair for pair in pairs if pair not in long] or [("", "")]
    found = metric.corpus_score([h for h, _ in rest], [[r for _, r in rest]])
    words = [(h.lower().split(), r.lower().split()) for h, r in long]  # TER's own tokens: no case, split at blanks
    total = found.num_edits + sum(edits(h, r) for h, r in words)
    length = found.ref_length + sum(len(r) for _, r in words)
    return Score(100.0 * total / length, f"{metric.get_signature()}|noshift:{len(long)}")


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """100 · lines equal to their reference / lines; blanks at either end do not count."""
    check_pairs(hypotheses, references)
    equal = sum(h.strip() == r.strip() for h, r in zip(hypotheses, references, strict=True))
    return 100.0 * equal / len(hypotheses)


def evaluate(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """Every score of the corpus at once."""
    return Scores(
        bleu=bleu(hypotheses, references),
        chrf=chrf(hypotheses, references),
        ter=ter(hypotheses, references),
        exact_match=exact_match(hypotheses, references),
        sentences=len(hypotheses),
    )
