"""Sequence to sequence as a task: padded batches, smoothed cross-entropy, validation by loss and BLEU."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.data.batches import Share, largest, plan_epoch
from regard.data.examples import Example, lengths
from regard.data.pairs import Pair
from regard.decoding.bulk import pad, score_pairs, source_rows, translate
from regard.decoding.options import SearchOptions
from regard.evaluation.scores import bleu, exact_match
from regard.layers.loss import Loss, perplexity, projected_cross_entropy
from regard.models.interface import SequenceToSequence
from regard.tasks.options import LossOptions
from regard.text.special import BOS
from regard.text.tokeniser import Tokeniser

Plan = Int[np.ndarray, " rows"]


@dataclass(frozen=True)
class Batch:
    """Source and target rectangles; `inputs` is `targets` shifted right behind the start token."""

    source: Int[Tensor, "n s"]
    source_mask: Bool[Tensor, "n s"]
    inputs: Int[Tensor, "n t"]
    targets: Int[Tensor, "n t"]
    mask: Bool[Tensor, "n t"]


def collate(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Ids without special tokens → a batch: sources end in EOS, targets too, inputs begin with BOS."""
    source, source_mask = pad(source_rows(sources))
    goals, mask = pad(source_rows(targets))
    inputs = goals.roll(1, 1)
    inputs[:, 0] = BOS
    return Batch(source, source_mask, inputs, goals, mask)


def translation_loss(model: SequenceToSequence, batch: Batch, smoothing: float) -> Loss:
    """Σ of the smoothed cross-entropy over target tokens, teacher-forced; padding never meets the output layer."""
    decoder = model.decoder
    memory = model.encode(batch.source, batch.source_mask)
    features, _ = decoder.features(batch.inputs, decoder.begin(memory))
    targets, output = batch.targets[batch.mask], decoder.output
    return Loss(
        projected_cross_entropy(features[batch.mask], output.weight, output.bias, targets, smoothing), len(targets)
    )


@dataclass(frozen=True)
class Vocabularies:
    """One tokeniser a side; a joint vocabulary is the same object twice."""

    source: Tokeniser
    target: Tokeniser

    @property
    def shared(self) -> bool:
        return self.source is self.target


@dataclass(frozen=True)
class TrainingSet:
    """The examples of all corpora in one row, the pairs they were cut from, and each corpus's share of an epoch."""

    examples: Sequence[Example]
    pairs: Sequence[Pair]
    shares: Sequence[Share]
    batch_tokens: int
    dropout: float  # of subword merges
    seed: int


@dataclass(frozen=True)
class Validation:
    """Pairs that training never sees, and how they are translated for BLEU: the first `sentences` of them."""

    pairs: Sequence[Pair]
    search: SearchOptions
    sentences: int


class Translation:
    """The task that the training loop runs; see tasks/interface.py for what each method promises."""

    def __init__(
        self, data: TrainingSet, validation: Validation, vocabularies: Vocabularies, options: LossOptions
    ) -> None:
        self.data, self.validation, self.vocabularies = data, validation, vocabularies
        self.smoothing = options.smoothing
        self.lengths = lengths(data.examples)

    def batches(self, epoch: int) -> list[Plan]:
        data = self.data
        return plan_epoch(self.lengths, data.shares, data.batch_tokens, data.seed, epoch)

    def largest(self) -> Plan:
        return largest(self.batches(0), self.lengths)

    def collate(self, plan: Plan, epoch: int) -> Batch:
        if not self.data.dropout:
            chosen = [self.data.examples[i] for i in plan]
            return collate([e.source.tolist() for e in chosen], [e.target.tolist() for e in chosen])
        sides = [self.resample(int(i), epoch) for i in plan]
        return collate([source for source, _ in sides], [target for _, target in sides])

    def resample(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Another segmentation of one example: a function of seed, epoch and example only."""
        rng = random.Random(f"{self.data.seed}/{epoch}/{index}")
        pair, dropout = self.data.pairs[index], self.data.dropout
        source = self.vocabularies.source.sample(pair.source, dropout, rng)
        return source, self.vocabularies.target.sample(pair.target, dropout, rng)

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        assert isinstance(model, SequenceToSequence)
        return translation_loss(model, batch, self.smoothing)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per token (no smoothing), perplexity, and BLEU and exact match of the first sentences."""
        assert isinstance(model, SequenceToSequence)
        pairs, search, sentences = self.validation.pairs, self.validation.search, self.validation.sentences
        sources = [self.vocabularies.source.encode(pair.source) for pair in pairs]
        targets = [self.vocabularies.target.encode(pair.target) for pair in pairs]
        scores = score_pairs(model, sources, targets)
        mean = -sum(map(sum, scores)) / sum(map(len, scores))
        found = translate(model, sources[:sentences], search)
        texts = [self.vocabularies.target.decode(hypotheses[0].tokens) for hypotheses in found]
        references = [pair.target for pair in pairs[:sentences]]
        return {
            "loss": mean,
            "perplexity": perplexity(mean),
            "bleu": bleu(texts, references).score,
            "exact_match": exact_match(texts, references),
        }
