"""Hidden tokens as a task: packed rows of plain text, cross-entropy where something was hidden, validation by loss."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int32
from torch import Tensor, nn

from regard.data.chance import chance
from regard.data.masking import choose_tokens, choose_words, mask_tokens
from regard.data.packing import group, pack, packed_epoch
from regard.errors import DataError
from regard.layers.loss import Loss, perplexity, projected_cross_entropy, smoothed_cross_entropy
from regard.models.bert import MaskedLanguageModel
from regard.tasks.options import MaskedOptions
from regard.text.special import BOS, EOS, NAMES

Plan = Int[np.ndarray, "_ 2"]
Stream = Int32[np.ndarray, " _"]
FRAME = 2  # BOS and EOS of a row


@dataclass(frozen=True)
class Batch:
    """Rows of one length without padding: what is seen, where something is to be predicted, and what, in that order."""

    tokens: Int[Tensor, "n t"]
    chosen: Bool[Tensor, "n t"]
    targets: Int[Tensor, " hidden"]


@dataclass(frozen=True)
class Hiding:
    """How a stream becomes batches with holes. `begins` says of every id whether it begins a word."""

    options: MaskedOptions
    begins: Bool[np.ndarray, " vocabulary"]
    rows: int
    seed: int

    def hide(self, ids: Int32[np.ndarray, " t"], epoch: int, place: int) -> tuple[np.ndarray, np.ndarray]:
        """What is seen of a row, and where it is to be predicted: a function of seed, epoch and place only."""
        rng = chance(self.seed, epoch, place)
        if self.options.whole_words:
            chosen = choose_words(ids, self.begins, self.options.share, rng)
        else:
            chosen = choose_tokens(ids, self.options.share, rng)
        return mask_tokens(ids, chosen, len(self.begins), rng), chosen


def features(model: MaskedLanguageModel, batch: Batch) -> Float[Tensor, "hidden d"]:
    """What the output layer reads, at the chosen positions only."""
    tokens = batch.tokens
    found = model.features(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens))
    return model.head.transform(found[batch.chosen])


class MaskedLanguageModelling:
    """The task that the training loop runs; see tasks/interface.py for what each method promises.

    A row is BOS, `context` − 2 tokens of the stream, EOS; documents that meet in a row have an EOS between them.
    """

    def __init__(self, stream: Stream, held_out: Stream, hiding: Hiding, smoothing: float) -> None:
        self.stream, self.held_out, self.hiding, self.smoothing = stream, held_out, hiding, smoothing
        for name, part in (("training", stream), ("held-out", held_out)):
            if not (part >= len(NAMES)).any():
                raise DataError(f"data.texts: the {name} text has no known token that could be hidden; give more text")
        self.ordinary = running_count(stream)

    @property
    def length(self) -> int:
        """Tokens of the stream in one row."""
        return min(self.hiding.options.context - FRAME, len(self.stream))

    def batches(self, epoch: int) -> list[Plan]:
        hiding = self.hiding
        plans = packed_epoch(len(self.stream), self.length, hiding.rows, hiding.seed, epoch)
        return with_something(plans, self.ordinary)

    def largest(self) -> Plan:
        return max(self.batches(0), key=len)

    def collate(self, plan: Plan, epoch: int) -> Batch:
        return self.cut(self.stream, plan, epoch)

    def cut(self, stream: Stream, plan: Plan, epoch: int) -> Batch:
        rows = [
            np.array([BOS, *stream[np.arange(first, end) % len(stream)], EOS], dtype=np.int32) for first, end in plan
        ]
        hidden = [self.hiding.hide(row, epoch, int(first)) for row, (first, _) in zip(rows, plan, strict=True)]
        chosen = torch.from_numpy(np.stack([where for _, where in hidden]))
        seen = torch.from_numpy(np.stack([ids for ids, _ in hidden])).long()
        return Batch(seen, chosen, torch.from_numpy(np.stack(rows)).long()[chosen])

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Σ of the smoothed cross-entropy over what was hidden; the other positions never meet the head."""
        assert isinstance(model, MaskedLanguageModel)
        output, targets = model.head.output, batch.targets
        rows = features(model, batch)
        return Loss(projected_cross_entropy(rows, output.weight, output.bias, targets, self.smoothing), len(targets))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss per hidden token (no smoothing), perplexity, and how many of 100 are guessed.

        All of the held-out text once, with the same holes at every validation.
        """
        assert isinstance(model, MaskedLanguageModel)
        held = self.held_out
        windows = pack(len(held), min(self.hiding.options.context - FRAME, len(held)))
        total, right, count = 0.0, 0, 0
        for plan in with_something(group(windows, self.hiding.rows), running_count(held)):
            batch = self.cut(held, plan, 0)
            logits = model.head.output(features(model, batch))
            total += float(smoothed_cross_entropy(logits, batch.targets, 0.0))
            right += int((logits.argmax(-1) == batch.targets).sum())
            count += len(batch.targets)
        mean = total / count
        return {"loss": mean, "perplexity": perplexity(mean), "accuracy": 100 * right / count}


def running_count(stream: Stream) -> Int[np.ndarray, " places"]:
    """Ordinary tokens before each place of the stream, gone through twice, since windows go round its end."""
    return np.concatenate([[0], np.cumsum(np.tile(stream >= len(NAMES), 2))])


def with_something(plans: Sequence[Plan], ordinary: Int[np.ndarray, " places"]) -> list[Plan]:
    """The windows in which something can be hidden: the last one may be a lone EOS."""
    kept = [plan[ordinary[plan[:, 1]] > ordinary[plan[:, 0]]] for plan in plans]
    return [plan for plan in kept if len(plan)]
