"""Predicting the next token as a task: packed rows of plain text, cross-entropy, validation by loss."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Int32
from torch import Tensor, nn

from regard.data.packing import cut_rows, group, pack
from regard.layers.loss import Loss, perplexity, projected_cross_entropy
from regard.models.interface import SequenceToSequence, nothing_read

Plan = Int[np.ndarray, "rows 2"]
Epoch = Callable[[int, int, int, int, int], list[Plan]]  # tokens, context, rows, seed, epoch → its batches


@dataclass(frozen=True)
class Batch:
    """Rows of one length without padding; what is to be predicted stands one to the left."""

    inputs: Int[Tensor, "n t"]
    targets: Int[Tensor, "n t"]


@dataclass(frozen=True)
class Rows:
    """How a stream of tokens becomes batches: `plan` is packed_epoch or cropped_epoch; `start` begins a document."""

    context: int
    rows: int
    seed: int
    plan: Epoch
    start: int


@dataclass(frozen=True)
class HeldOut:
    """A stream that training never sees, and of how many characters it was cut."""

    stream: Int32[np.ndarray, " tokens"]
    characters: int


def features(model: SequenceToSequence, batch: Batch) -> Float[Tensor, "rows d"]:
    """What the output layer reads at every position."""
    found, _ = model.decoder.features(batch.inputs, model.decoder.begin(nothing_read(len(batch.inputs))))
    return found.flatten(0, 1)


class LanguageModelling:
    """The task that the training loop runs; see tasks/interface.py for what each method promises."""

    def __init__(self, stream: Int32[np.ndarray, " tokens"], rows: Rows, held_out: HeldOut, smoothing: float) -> None:
        self.stream, self.rows, self.held_out, self.smoothing = stream, rows, held_out, smoothing

    def batches(self, epoch: int) -> list[Plan]:
        rows = self.rows
        return rows.plan(len(self.stream), rows.context, rows.rows, rows.seed, epoch)

    def largest(self) -> Plan:
        return max(self.batches(0), key=len)

    def collate(self, plan: Plan, epoch: int) -> Batch:  # noqa: ARG002
        return self.cut(self.stream, plan)

    def cut(self, stream: Int32[np.ndarray, " tokens"], plan: Plan) -> Batch:
        inputs, targets = cut_rows(stream, plan, self.rows.start)
        return Batch(torch.from_numpy(inputs).long(), torch.from_numpy(targets).long())

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        assert isinstance(model, SequenceToSequence)
        return cross_entropy(model, batch, self.smoothing)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per token (no smoothing), its perplexity, and bits per character, of the held-out text."""
        assert isinstance(model, SequenceToSequence)
        stream, rows = self.held_out.stream, self.rows
        plans = group(pack(len(stream), min(rows.context, len(stream))), rows.rows)
        total = sum(float(cross_entropy(model, self.cut(stream, plan), 0.0).total) for plan in plans)
        mean = total / len(stream)
        bits = total / math.log(2) / self.held_out.characters
        return {"loss": mean, "perplexity": perplexity(mean), "bits_per_character": bits}


def cross_entropy(model: SequenceToSequence, batch: Batch, smoothing: float) -> Loss:
    """Σ of the smoothed cross-entropy over all positions."""
    targets, output = batch.targets.flatten(), model.decoder.output
    rows = features(model, batch)
    return Loss(projected_cross_entropy(rows, output.weight, output.bias, targets, smoothing), len(targets))
