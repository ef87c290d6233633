"""Sequence to sequence as a task: padded batches, smoothed cross-entropy, validation by loss and BLEU."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int32
from torch import Tensor, nn

from regard.data.batches import Share, divide, largest, plan_epoch
from regard.data.corpus import Part
from regard.data.examples import Example, lengths
from regard.data.noise import drop_words
from regard.data.pairs import Pair
from regard.decoding.bulk import pad, score_pairs, source_rows, translate
from regard.decoding.options import SearchOptions
from regard.evaluation.samples import Sample
from regard.evaluation.scores import bleu, exact_match
from regard.explaining.alignment import cross_attentions
from regard.explaining.record import watch
from regard.layers.consistency import projected_consistency
from regard.layers.guidance import alignment_cross_entropy
from regard.layers.loss import Loss, perplexity, projected_cross_entropy
from regard.models.interface import SequenceToSequence
from regard.models.penalties import penalties
from regard.tasks.guiding import gold_weights, taught_head
from regard.tasks.options import LossOptions
from regard.text.special import BOS
from regard.text.tokeniser import Tokeniser

Plan = Int[np.ndarray, " rows"]


@dataclass(frozen=True)
class Batch:
    """Source and target rectangles; `inputs` is what is seen of `targets`, shifted right behind the start token."""

    source: Int[Tensor, "n s"]
    source_mask: Bool[Tensor, "n s"]
    inputs: Int[Tensor, "n t"]
    targets: Int[Tensor, "n t"]
    mask: Bool[Tensor, "n t"]
    alignment: Float[Tensor, "n t s"] | None = None  # where each step should look, for guided attention


def collate(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], seen: Sequence[Sequence[int]] | None = None
) -> Batch:
    """Ids without special tokens → a batch: sources end in EOS, targets too, inputs begin with BOS.

    `seen`: the targets as the decoder is shown them, each as long as what it has to predict; none: as they are.
    """
    source, source_mask = pad(source_rows(sources))
    goals, mask = pad(source_rows(targets))
    inputs = (goals if seen is None else pad(source_rows(seen))[0]).roll(1, 1)
    inputs[:, 0] = BOS
    return Batch(source, source_mask, inputs, goals, mask)


def features(model: SequenceToSequence, batch: Batch, passes: int) -> Float[Tensor, "passes rows d"]:
    """What the output layer reads at every target token, teacher-forced, as often as dropout is to be drawn anew.

    The passes are one larger batch, not one after another: dropout differs by row, and larger products are faster.
    """
    source, mask, inputs = (part.repeat(passes, 1) for part in (batch.source, batch.source_mask, batch.inputs))
    found, _ = model.decoder.features(inputs, model.decoder.begin(model.encode(source, mask)))
    return found[batch.mask.repeat(passes, 1)].view(passes, -1, found.shape[-1])


def translation_loss(model: SequenceToSequence, batch: Batch, smoothing: float) -> Loss:
    """Σ of the smoothed cross-entropy over target tokens, teacher-forced; padding never meets the output layer."""
    targets, output = batch.targets[batch.mask], model.decoder.output
    (rows,) = features(model, batch, 1)
    return Loss(projected_cross_entropy(rows, output.weight, output.bias, targets, smoothing), len(targets))


def consistent_loss(model: SequenceToSequence, batch: Batch, smoothing: float, agreement: float) -> Loss:
    """Two passes that must agree (R-Drop): shown is their mean cross-entropy, learned from is that and their distance.

    So that the course of a run compares with one without; see `consistent_cross_entropy` for the whole.
    """
    targets, output = batch.targets[batch.mask], model.decoder.output
    rows = features(model, batch, 2)
    whole, entropy = projected_consistency(rows, output.weight, output.bias, targets, smoothing, agreement)
    return Loss(entropy + felt(whole - entropy), len(targets))


def felt(penalty: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """0, with the gradient of `penalty`; not a number where the penalty is none, so that such a step is noticed."""
    return penalty - penalty.detach()


def penalised(model: SequenceToSequence, compute: Callable[[], Loss]) -> Loss:
    """The loss, and the gradients of what layers ask for beside it, such as an even load of experts."""
    with penalties(model) as added:
        found = compute()
    return replace(found, total=found.total + felt(found.units * torch.stack(added).sum())) if added else found


@dataclass(frozen=True)
class Vocabularies:
    """One tokeniser a side; a joint vocabulary is the same object twice."""

    source: Tokeniser
    target: Tokeniser

    @property
    def shared(self) -> bool:
        return self.source is self.target

    @property
    def same_names(self) -> bool:
        """Whether each id is the same word on both sides, though each side may cut its texts in its own way."""
        source, target = self.source, self.target
        return self.shared or (
            len(source) == len(target) and all(source.name(id) == target.name(id) for id in range(len(source)))
        )

    def save(self, folder: Path) -> None:
        if self.shared:
            self.source.save(folder, "shared")
        else:
            self.source.save(folder, "source")
            self.target.save(folder, "target")


@dataclass(frozen=True)
class TrainingSet:
    """The examples of all corpora in one row, the pairs they were cut from, and each corpus's share of an epoch.

    `links`, for guided attention, are the (target, source) tokens of each example that belong to linked words.
    """

    examples: Sequence[Example]
    pairs: Sequence[Pair]
    shares: Sequence[Share]
    batch_tokens: int
    dropout: float  # of subword merges
    seed: int
    links: Sequence[Int32[np.ndarray, "_ 2"]] = ()


@dataclass(frozen=True)
class Validation:
    """Pairs that training never sees, and how they are translated for BLEU: the first `sentences` of them.

    Where they are of several tasks, these share the sentences.
    """

    pairs: Sequence[Pair]
    search: SearchOptions
    sentences: int
    parts: Sequence[Part] = ()

    @property
    def first(self) -> list[Pair]:
        """Those that are translated."""
        if not self.parts:
            return list(self.pairs[: self.sentences])
        each = -(-self.sentences // len(self.parts))
        return [pair for _, pairs in self.of_each() for pair in pairs[:each]]

    def of_each(self) -> Iterator[tuple[str, Sequence[Pair]]]:
        """The name and the pairs of every part."""
        ends = accumulate(part.count for part in self.parts)
        return ((part.name, self.pairs[end - part.count : end]) for part, end in zip(self.parts, ends, strict=True))


SAMPLES = 4  # validation sentences whose translations are shown


class Translation:
    """The task that the training loop runs; see tasks/interface.py for what each method promises."""

    def __init__(
        self, data: TrainingSet, validation: Validation, vocabularies: Vocabularies, options: LossOptions
    ) -> None:
        self.data, self.validation, self.vocabularies, self.options = data, validation, vocabularies, options
        self.lengths = lengths(data.examples)

    def batches(self, epoch: int) -> list[Plan]:
        data = self.data
        return plan_epoch(self.lengths, data.shares, data.batch_tokens, data.seed, epoch)

    def largest(self) -> Plan:
        return largest(self.batches(0), self.lengths)

    def divide(self, plan: Plan, parts: int) -> list[Plan]:
        return divide(plan, self.lengths, parts)

    def collate(self, plan: Plan, epoch: int) -> Batch:
        batch, links = self.texts(plan, epoch), self.data.links
        if not links:
            return batch
        tokens, sources = batch.targets.shape[1], batch.source.shape[1]
        gold = gold_weights([links[int(i)] for i in plan], tokens, sources, self.options.guided_step)
        return replace(batch, alignment=gold)

    def texts(self, plan: Plan, epoch: int) -> Batch:
        """The batch without what is known of its alignment."""
        sides = [self.sides(int(i), epoch) for i in plan]
        sources, targets = [source for source, _ in sides], [target for _, target in sides]
        if not (self.options.source_word_dropout or self.options.target_word_dropout):
            return collate(sources, targets)
        seen = [self.holed(int(i), epoch, *pair) for i, pair in zip(plan, sides, strict=True)]
        return collate([source for source, _ in seen], targets, [target for _, target in seen])

    def sides(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Source and target of one example, in this epoch's segmentation."""
        example = self.data.examples[index]
        return self.resample(index, epoch) if self.data.dropout else (example.source.tolist(), example.target.tolist())

    def resample(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Another segmentation of one example: a function of seed, epoch and example only."""
        rng = random.Random(f"{self.data.seed}/{epoch}/{index}")
        pair, dropout = self.data.pairs[index], self.data.dropout
        source = self.vocabularies.source.sample(pair.source, dropout, rng)
        return source, self.vocabularies.target.sample(pair.target, dropout, rng)

    def holed(self, index: int, epoch: int, source: list[int], target: list[int]) -> tuple[list[int], list[int]]:
        """What the model sees of an example under word dropout: a function of seed, epoch and example only."""
        rng = random.Random(f"{self.data.seed}/{epoch}/{index}/words")
        source = drop_words(source, self.options.source_word_dropout, rng)
        return source, drop_words(target, self.options.target_word_dropout, rng)

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        assert isinstance(model, SequenceToSequence)
        return self.text_loss(model, batch) if batch.alignment is None else self.guided_loss(model, batch)

    def guided_loss(self, model: SequenceToSequence, batch: Batch) -> Loss:
        """Shown is the loss of the text, learned from is that and λ times how far the taught head looks elsewhere."""
        assert batch.alignment is not None
        modules = cross_attentions(model)
        layer, head = taught_head(self.options, len(modules))
        with watch(modules[layer - 1]) as calls:
            found = self.text_loss(model, batch)
        looked = torch.cat(calls[""], dim=2)[:, head - 1]
        astray = alignment_cross_entropy(looked, batch.alignment.to(looked))
        return replace(found, total=found.total + felt(self.options.guided * astray))

    def text_loss(self, model: SequenceToSequence, batch: Batch) -> Loss:
        smoothing, agreement = self.options.smoothing, self.options.rdrop
        if agreement:
            return penalised(model, lambda: consistent_loss(model, batch, smoothing, agreement))
        return penalised(model, lambda: translation_loss(model, batch, smoothing))

    def validation_loss(self, model: SequenceToSequence) -> float:
        """Mean loss per token of the validation pairs, without smoothing."""
        sources = [self.vocabularies.source.encode(pair.source) for pair in self.validation.pairs]
        targets = [self.vocabularies.target.encode(pair.target) for pair in self.validation.pairs]
        scores = score_pairs(model, sources, targets)
        return -sum(map(sum, scores)) / sum(map(len, scores))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per token (no smoothing), perplexity, and BLEU and exact match of the first sentences."""
        assert isinstance(model, SequenceToSequence)
        mean, pairs = self.validation_loss(model), self.validation.first
        texts = self.written(model, pairs)
        references = [pair.target for pair in pairs]
        return {
            "loss": mean,
            "perplexity": perplexity(mean),
            "bleu": bleu(texts, references).score,
            "exact_match": exact_match(texts, references),
        }

    def samples(self, model: nn.Module) -> list[Sample]:
        """Of the sentences that BLEU is measured with, a few that lie evenly apart."""
        assert isinstance(model, SequenceToSequence)
        first = self.validation.first
        pairs = first[:: max(1, len(first) // SAMPLES)][:SAMPLES]
        texts = self.written(model, pairs)
        return [Sample(pair.source, text, pair.target).short for pair, text in zip(pairs, texts, strict=True)]

    def written(self, model: SequenceToSequence, pairs: Sequence[Pair]) -> list[str]:
        """What the model makes of the sources."""
        sources = [self.vocabularies.source.encode(pair.source) for pair in pairs]
        found = translate(model, sources, self.validation.search)
        return [self.vocabularies.target.decode(hypotheses[0].tokens) for hypotheses in found]
