"""Sorting texts as a task: batches of like lengths, smoothed cross-entropy over classes, validation by accuracy."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batches import Share, largest, plan_epoch
from regard.data.framing import Ids, framed, shortened
from regard.data.labelled import LabelledText
from regard.data.labels import Labels
from regard.data.noise import drop_words
from regard.decoding.batching import order_by_length
from regard.decoding.bulk import pad
from regard.errors import ModelFormatError
from regard.evaluation.accuracy import accuracy, confusion, macro_f1
from regard.files import write_atomically
from regard.layers.consistency import projected_consistency
from regard.layers.loss import Loss, smoothed_cross_entropy
from regard.models.bert import TextClassifier
from regard.tasks.options import LossOptions
from regard.tasks.translate import felt
from regard.text.tokeniser import Tokeniser

Plan = Int[np.ndarray, " rows"]
LABELS = "labels.json"


@dataclass(frozen=True)
class Classes:
    """What a classifier reads and answers: a tokeniser, the names of the classes, and whether texts come in pairs."""

    tokeniser: Tokeniser
    labels: Labels
    pairs: bool

    def save(self, folder: Path) -> None:
        self.tokeniser.save(folder, "shared")
        content = {"labels": list(self.labels.names), "pairs": self.pairs}
        write_atomically(folder / LABELS, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_labels(folder: Path) -> tuple[Labels, bool]:
    """The names of the classes, and whether texts come in pairs, as `Classes.save` wrote them."""
    path = folder / LABELS
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path}: missing or damaged ({error}); copy the folder again") from error
    match content:
        case {"labels": [*names], "pairs": bool(pairs)} if all(isinstance(name, str) for name in names):
            if len(set(names)) == len(names) > 1:
                return Labels(tuple(names)), pairs
    raise ModelFormatError(f"{path}: expected labels, two or more different names, and pairs; copy the folder again")


@dataclass(frozen=True)
class Rows:
    """Texts in frames, as a rectangle: what the classifier is called with."""

    tokens: Int[Tensor, "n s"]
    mask: Bool[Tensor, "n s"]
    segments: Int[Tensor, "n s"]


def rows_of(frames: Sequence[tuple[list[int], list[int]]]) -> Rows:
    """Padding is of the first segment, and invisible."""
    tokens, mask = pad([tokens for tokens, _ in frames])
    segments, _ = pad([segments for _, segments in frames])
    return Rows(tokens, mask, segments)


@dataclass(frozen=True)
class Batch:
    rows: Rows
    labels: Int[Tensor, " n"]


@dataclass(frozen=True)
class Texts:
    """Texts to learn from, or to validate with, and the ids of their labels."""

    examples: Sequence[LabelledText]
    labels: Int[np.ndarray, " examples"]


@dataclass(frozen=True)
class Reading:
    """How texts become rows: cut to `max_tokens`; in training, segmented anew with `dropout` of the merges."""

    tokeniser: Tokeniser
    max_tokens: int
    batch_tokens: int
    dropout: float
    seed: int

    def ids(self, example: LabelledText) -> tuple[Ids, Ids | None]:
        """Both texts as they are, however long."""
        second = None if example.second is None else self.tokeniser.encode(example.second)
        return self.tokeniser.encode(example.text), second

    def drawn(self, example: LabelledText, rng: random.Random) -> tuple[Ids, Ids | None]:
        """The same in another segmentation."""
        first = self.tokeniser.sample(example.text, self.dropout, rng)
        return first, None if example.second is None else self.tokeniser.sample(example.second, self.dropout, rng)


class Classification:
    """The task that the training loop runs; see tasks/interface.py for what each method promises."""

    def __init__(
        self, training: Texts, shares: Sequence[Share], validation: Texts, reading: Reading, options: LossOptions
    ) -> None:
        self.training, self.shares, self.validation = training, shares, validation
        self.reading, self.options = reading, options
        self.ids, self.valid_ids = ([reading.ids(e) for e in part.examples] for part in (training, validation))
        lengths = [len(self.frame(first, second)[0]) for first, second in self.ids]
        self.lengths = np.array([lengths, lengths], dtype=np.int64).T  # plan_epoch reads two sides

    def frame(self, first: Ids, second: Ids | None) -> tuple[list[int], list[int]]:
        return framed(*shortened(first, second, self.reading.max_tokens))

    def shortened(self) -> tuple[int, int]:
        """How many texts are longer than `max_tokens`, to learn from and to validate with."""
        one, other = (
            sum(len(framed(first, second)[0]) > self.reading.max_tokens for first, second in part)
            for part in (self.ids, self.valid_ids)
        )
        return one, other

    def batches(self, epoch: int) -> list[Plan]:
        reading = self.reading
        return plan_epoch(self.lengths, self.shares, reading.batch_tokens, reading.seed, epoch)

    def largest(self) -> Plan:
        return largest(self.batches(0), self.lengths)

    def collate(self, plan: Plan, epoch: int) -> Batch:
        frames = [self.frame(*self.seen(int(i), epoch)) for i in plan]
        return Batch(rows_of(frames), torch.from_numpy(self.training.labels[plan]))

    def seen(self, index: int, epoch: int) -> tuple[Ids, Ids | None]:
        """What the model sees of an example, dropouts included: a function of seed, epoch and example only."""
        reading, words = self.reading, self.options.source_word_dropout
        rng = random.Random(f"{reading.seed}/{epoch}/{index}")
        first, second = reading.drawn(self.training.examples[index], rng) if reading.dropout else self.ids[index]
        if not words:
            return first, second
        return drop_words(first, words, rng), None if second is None else drop_words(second, words, rng)

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Σ of the smoothed cross-entropy over texts; with R-Drop, learned from is also that two passes agree."""
        assert isinstance(model, TextClassifier)
        smoothing, agreement = self.options.smoothing, self.options.rdrop
        if not agreement:
            total = smoothed_cross_entropy(model(*cells(batch.rows)), batch.labels, smoothing)
            return Loss(total, len(batch.labels))
        rows = pooled(model, batch.rows, 2)
        output = model.output
        whole, entropy = projected_consistency(rows, output.weight, output.bias, batch.labels, smoothing, agreement)
        return Loss(entropy + felt(whole - entropy), len(batch.labels))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per text (no smoothing), accuracy, and macro F1, of all validation texts."""
        assert isinstance(model, TextClassifier)
        labels = self.validation.labels
        frames = [self.frame(first, second) for first, second in self.valid_ids]
        logits = classify(model, frames, self.reading.batch_tokens)
        mean = float(smoothed_cross_entropy(logits, torch.from_numpy(labels), 0.0)) / len(labels)
        counts = confusion(logits.argmax(-1).tolist(), labels.tolist(), logits.shape[-1])
        return {"loss": mean, "accuracy": accuracy(counts), "macro_f1": macro_f1(counts)}


def cells(rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    return rows.tokens, rows.mask, rows.segments


def pooled(model: TextClassifier, rows: Rows, passes: int) -> Float[Tensor, "passes n d"]:
    """What the output layer reads, as often as dropout is to be drawn anew: one larger batch, as dropout is by row."""
    x = model.features(*(part.repeat(passes, 1) for part in cells(rows)))
    y: Tensor = model.dropout(model.pooler(x))
    return y.view(passes, -1, y.shape[-1])


def classify(
    model: TextClassifier, frames: Sequence[tuple[list[int], list[int]]], batch_tokens: int
) -> Float[Tensor, "texts classes"]:
    """logits of every text, in the order of the texts, computed in batches of like lengths."""
    found: dict[int, Tensor] = {}
    for part in order_by_length([len(tokens) for tokens, _ in frames], batch_tokens):
        found |= zip(part, model(*cells(rows_of([frames[i] for i in part]))), strict=True)
    return torch.stack([found[i] for i in range(len(frames))])
