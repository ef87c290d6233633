"""How good the trees of a parser are that says nothing of tags: EVALB's scores, under the tags of the reference."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.evaluation.brackets import BracketScore, percentage, score_brackets
from regard.evaluation.trees import Tree, read_tree, retag, write_tree

SHORT = 40  # words: EVALB reports sentences up to this length by themselves


@dataclass(frozen=True)
class ParseScores:
    """Brackets of all sentences and of the short ones; `well_formed`: of all parses, those that are a whole tree over
    the words of their sentence, in percent."""

    every: BracketScore
    short: BracketScore
    well_formed: float

    def to_json(self) -> dict[str, float]:
        every = self.every
        return {
            "f1": every.f1,
            "precision": every.precision,
            "recall": every.recall,
            "complete_match": every.complete_match,
            f"f1_up_to_{SHORT}_words": self.short.f1,
            "well_formed": self.well_formed,
            "sentences": every.sentences,
            "mismatched": len(every.mismatched),
            "skipped": every.skipped,
            "gold_brackets": every.gold,
            "parsed_brackets": every.parsed,
            "matched_brackets": every.matched,
        }

    def lines(self) -> list[str]:
        """For people, a score each."""
        every = self.every
        return [
            f"F1 {every.f1:.2f} (precision {every.precision:.2f}, recall {every.recall:.2f})",
            f"F1 {self.short.f1:.2f} on the {self.short.sentences:,} sentences of up to {SHORT} words",
            f"complete match {every.complete_match:.2f} %",
            f"well-formed {self.well_formed:.2f} %, mismatched sentences {len(every.mismatched)}",
        ]


def tagged_as(gold: Sequence[Tree], parsed: Sequence[Tree]) -> list[Tree]:
    """The parses under the tags of the reference, which say what is punctuation and does not count."""
    return [retag(tree, reference.tags) for reference, tree in zip(gold, parsed, strict=True)]


def score_parses(gold: Sequence[Tree], parsed: Sequence[Tree]) -> ParseScores:
    """One parse for each reference tree, over the same number of words."""
    tagged = tagged_as(gold, parsed)
    whole = sum(
        reads_back(tree) and tree.words == reference.words for reference, tree in zip(gold, parsed, strict=True)
    )
    every, short = score_brackets(gold, tagged), score_brackets(gold, tagged, longest=SHORT)
    return ParseScores(every, short, percentage(whole, len(parsed)))


def reads_back(tree: Tree) -> bool:
    """Whether the line that is written of a tree is that tree."""
    return read_tree(write_tree(tree)) == tree
