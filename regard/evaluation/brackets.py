"""Labelled bracket precision, recall and F1 by the rules of EVALB with Collins's parameters (COLLINS.prm).

Traces and punctuation are taken out by their tags, and with them the constituents that they leave empty; TOP does not
count; function labels are cut off (NP-SBJ is NP); ADVP and PRT are the same. Of several equal brackets over the same
words, each is matched once. Sekine & Collins 1997.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from regard.errors import DataError
from regard.evaluation.trees import TOP, Tree

TRACE = "-NONE-"
DELETED = frozenset({TOP, TRACE, ",", ":", "``", "''", "."})
SAME = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]  # label, first word, word after the last


@dataclass(frozen=True)
class Comparison:
    """One sentence: its brackets in the reference, in the parse and in both; its words, and those tagged alike.

    As EVALB has it, nothing is counted where the words differ ("mismatched") and where the parse has no word that
    counts ("skipped").
    """

    length: int  # words of the reference, traces apart
    status: Literal["scored", "mismatched", "skipped"]
    gold: int = 0
    parsed: int = 0
    matched: int = 0
    words: int = 0
    tagged: int = 0

    @property
    def complete(self) -> bool:
        return self.status == "scored" and self.gold == self.parsed == self.matched


@dataclass(frozen=True)
class BracketScore:
    """Counts over a corpus, and the percentages made of them; `mismatched` are the sentences, counted from 0."""

    sentences: int
    mismatched: tuple[int, ...]
    skipped: int
    gold: int
    parsed: int
    matched: int
    complete: int
    words: int
    tagged: int

    @property
    def precision(self) -> float:
        return percentage(self.matched, self.parsed)

    @property
    def recall(self) -> float:
        return percentage(self.matched, self.gold)

    @property
    def f1(self) -> float:
        return percentage(2 * self.matched, self.parsed + self.gold)

    @property
    def complete_match(self) -> float:
        """Of the sentences that were scored, those with every bracket right."""
        return percentage(self.complete, self.sentences - len(self.mismatched) - self.skipped)

    @property
    def tagging_accuracy(self) -> float:
        return percentage(self.tagged, self.words)

    def to_json(self) -> dict[str, object]:
        ratios = ("precision", "recall", "f1", "complete_match", "tagging_accuracy")
        return {name: getattr(self, name) for name in ratios} | asdict(self)


def percentage(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def score_brackets(gold: Sequence[Tree], parsed: Sequence[Tree], longest: int | None = None) -> BracketScore:
    """The score of all sentences, or of those with at most `longest` words in the reference.

    The parses need tags, or punctuation is not recognised and the sentences count as mismatched: see `retag`.
    """
    if len(gold) != len(parsed):
        raise DataError(f"evaluation: {len(parsed)} parses for {len(gold)} reference trees; give one parse per tree")
    found = [compare(one, other) for one, other in zip(gold, parsed, strict=True)]
    kept = [(i, c) for i, c in enumerate(found) if longest is None or c.length <= longest]
    return BracketScore(
        sentences=len(kept),
        mismatched=tuple(i for i, c in kept if c.status == "mismatched"),
        skipped=sum(c.status == "skipped" for _, c in kept),
        gold=sum(c.gold for _, c in kept),
        parsed=sum(c.parsed for _, c in kept),
        matched=sum(c.matched for _, c in kept),
        complete=sum(c.complete for _, c in kept),
        words=sum(c.words for _, c in kept),
        tagged=sum(c.tagged for _, c in kept),
    )


def compare(gold: Tree, parsed: Tree) -> Comparison:
    length = sum(tag != TRACE for tag in gold.tags)
    ours, theirs = ([leaf for leaf in tree.leaves() if leaf.label not in DELETED] for tree in (parsed, gold))
    if not ours:
        return Comparison(length, "skipped")
    if [leaf.word for leaf in ours] != [leaf.word for leaf in theirs]:
        return Comparison(length, "mismatched")
    tagged = sum(SAME.get(a.label, a.label) == SAME.get(b.label, b.label) for a, b in zip(ours, theirs, strict=True))
    found, wanted = brackets(parsed), brackets(gold)
    matched = (found & wanted).total()
    return Comparison(length, "scored", wanted.total(), found.total(), matched, len(ours), tagged)


def brackets(tree: Tree) -> Counter[Bracket]:
    """How often each bracket occurs, its place counted in words that are not deleted."""
    found: Counter[Bracket] = Counter()
    _collect(tree, 0, found)
    return found


def _collect(tree: Tree, start: int, found: Counter[Bracket]) -> int:
    """Adds the brackets of a tree whose first word is number `start`, and gives the number of the word after it."""
    if tree.word is not None:
        return start + (tree.label not in DELETED)
    end = start
    for child in tree.children:
        end = _collect(child, end, found)
    label = tree.label.partition("-")[0].partition("=")[0]
    if end > start and label not in DELETED:
        found[SAME.get(label, label), start, end] += 1
    return end
