"""Left-out stretches as a task: packed rows of plain text, a sentinel for each stretch, validation by loss."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Int32
from torch import nn

from regard.data.chance import chance
from regard.data.examples import Example
from regard.data.packing import group, pack, packed_epoch
from regard.data.spans import corrupt
from regard.layers.loss import Loss, perplexity
from regard.models.interface import SequenceToSequence
from regard.tasks.options import DenoiseOptions
from regard.tasks.translate import Batch, collate, penalised, translation_loss

Plan = Int[np.ndarray, "_ 2"]
Stream = Int32[np.ndarray, " _"]


@dataclass(frozen=True)
class Corruption:
    """How a stream becomes batches with stretches left out."""

    options: DenoiseOptions
    sentinels: range
    rows: int
    seed: int

    def spoil(self, ids: Int32[np.ndarray, " t"], epoch: int, place: int) -> Example:
        """Source and target of a row: a function of seed, epoch and place only."""
        return corrupt(ids, self.sentinels, self.options, chance(self.seed, epoch, place))


class Denoising:
    """The task that the training loop runs; see tasks/interface.py for what each method promises.

    A row is `context` tokens of the stream; documents that meet in a row have an EOS between them.
    """

    def __init__(self, stream: Stream, held_out: Stream, corruption: Corruption, smoothing: float) -> None:
        self.stream, self.held_out, self.corruption, self.smoothing = stream, held_out, corruption, smoothing
        self.collate(self.largest(), 0)  # too few sentinels for a row are known at once

    def length(self, stream: Stream) -> int:
        """Tokens in one row."""
        return min(self.corruption.options.context, len(stream))

    def batches(self, epoch: int) -> list[Plan]:
        how = self.corruption
        return packed_epoch(len(self.stream), self.length(self.stream), how.rows, how.seed, epoch)

    def largest(self) -> Plan:
        return max(self.batches(0), key=len)

    def collate(self, plan: Plan, epoch: int) -> Batch:
        return self.cut(self.stream, plan, epoch)

    def cut(self, stream: Stream, plan: Plan, epoch: int) -> Batch:
        rows = [
            self.corruption.spoil(stream[np.arange(first, end) % len(stream)], epoch, int(first)) for first, end in plan
        ]
        return collate([row.source.tolist() for row in rows], [row.target.tolist() for row in rows])

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Σ of the smoothed cross-entropy over the tokens that were left out, their sentinels, and the end."""
        assert isinstance(model, SequenceToSequence)
        return penalised(model, lambda: translation_loss(model, batch, self.smoothing))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per target token (no smoothing) and perplexity, of all the held-out text once.

        The same stretches are left out at every validation.
        """
        assert isinstance(model, SequenceToSequence)
        windows = pack(len(self.held_out), self.length(self.held_out))
        found = [
            translation_loss(model, self.cut(self.held_out, plan, 0), 0.0)
            for plan in group(windows, self.corruption.rows)
        ]
        mean = float(sum(found[1:], found[0]).mean)
        return {"loss": mean, "perplexity": perplexity(mean)}
