"""Constituency parsing as a task: learned as translation into brackets, validated by the trees that are found."""

from collections.abc import Sequence

from torch import nn

from regard.data.treebank import sentence_of, unlinearise
from regard.decoding.grammar import Grammar
from regard.decoding.options import SearchOptions
from regard.decoding.within import search_within
from regard.evaluation.parses import score_parses
from regard.evaluation.trees import ESCAPES, Tree
from regard.layers.loss import Loss, perplexity
from regard.models.interface import SequenceToSequence
from regard.tasks.translate import Batch, Plan, Translation, Vocabularies
from regard.text.special import NAMES
from regard.text.tokeniser import Tokeniser


def grammar_of(target: Tokeniser, *, chains: int, cap: int) -> Grammar:
    """The grammar of a vocabulary of brackets: its ids are the grammar's."""
    symbols = (target.decode([id]) for id in range(len(NAMES), len(target)))
    return Grammar([*NAMES, *symbols], chains=chains, cap=cap)


def find_trees(
    model: SequenceToSequence,
    vocabularies: Vocabularies,
    grammar: Grammar,
    sentences: Sequence[Sequence[str]],
    search: SearchOptions,
) -> list[Tree]:
    """The best tree over the words of each sentence; whatever the weights are, it is a tree. The tags are XX.

    The model reads round brackets as the treebank writes them, -LRB- and -RRB-; the words of the tree stay as given.
    """
    texts = [sentence_of(words, grammar.numbers).translate(ESCAPES) for words in sentences]
    sources = [vocabularies.source.encode(text) for text in texts]
    found = search_within(model, sources, search, lambda part: grammar.over([len(sentences[i]) for i in part]))
    symbols = [vocabularies.target.decode(hypotheses[0].tokens).split() for hypotheses in found]
    return [unlinearise(row, words) for row, words in zip(symbols, sentences, strict=True)]


class Parsing:
    """The task that the training loop runs: a Translation of words into brackets, but for its scores.

    `trees` are those that the validation pairs of `learning` were written from, in the same order.
    """

    def __init__(self, learning: Translation, trees: Sequence[Tree], grammar: Grammar) -> None:
        self.learning, self.trees, self.grammar = learning, trees, grammar

    def batches(self, epoch: int) -> list[Plan]:
        return self.learning.batches(epoch)

    def largest(self) -> Plan:
        return self.learning.largest()

    def collate(self, plan: Plan, epoch: int) -> Batch:
        return self.learning.collate(plan, epoch)

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        return self.learning.loss(model, batch)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per symbol (no smoothing), perplexity, and the brackets of the first sentences' trees."""
        assert isinstance(model, SequenceToSequence)
        validation = self.learning.validation
        mean, trees = self.learning.validation_loss(model), self.trees[: validation.sentences]
        sentences = [tree.words for tree in trees]
        parsed = find_trees(model, self.learning.vocabularies, self.grammar, sentences, validation.search)
        found = score_parses(trees, parsed).every
        return {
            "loss": mean,
            "perplexity": perplexity(mean),
            "f1": found.f1,
            "complete_match": found.complete_match,
        }
