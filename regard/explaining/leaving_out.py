"""How probable an output is with some tokens left out of what the model reads: the black box that RISE asks.

A hidden token is left out, as if the user or the model had never written it: the sequence is shorter, and nothing
stands in its place. So every family can be asked, whatever its positions, and no token is needed that means nothing:
the unknown token of a vocabulary of subwords was hardly ever trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.batching import order_by_length
from regard.decoding.bulk import BATCH_TOKENS, pad
from regard.decoding.scoring import log_probabilities, score
from regard.explaining.explanation import Explanation
from regard.explaining.rise import Score
from regard.models.interface import SequenceToSequence


@dataclass(frozen=True)
class Written:
    """Ids of a target behind the `start` token, for a source closed by its end token; no source: a language model's."""

    source: tuple[int, ...]
    start: int
    target: tuple[int, ...]

    @property
    def source_places(self) -> int:
        """Source tokens that can be left out: all but the end token."""
        return max(len(self.source) - 1, 0)

    @property
    def previous_places(self) -> int:
        """Target tokens that a later one can miss: all but the last."""
        return len(self.target) - 1


def written_in(explanation: Explanation) -> Written:
    """The ids of an explanation that has a target."""
    assert explanation.start is not None
    assert explanation.target is not None
    source = explanation.source.tokens if explanation.source else ()
    return Written(
        tuple(token.id for token in source),
        explanation.start.id,
        tuple(token.id for token in explanation.target.tokens),
    )


# ---------------------------------------------------------------- two black boxes; the model is in evaluation mode
def without_source(model: SequenceToSequence, written: Written) -> Score:
    """p(target_t | target_<t, what is kept of the source) for every t; a mask has no place for the end token."""

    @torch.inference_mode()
    def ask(masks: Float[Tensor, "n places"]) -> Float[Tensor, "n t"]:
        rows = [[*kept, written.source[-1]] for kept in kept_ids(masks, written.source[:-1])]
        found = torch.zeros(len(rows), len(written.target), dtype=torch.float64)
        for part in order_by_length([max(len(row), len(written.target)) for row in rows], BATCH_TOKENS):
            memory = model.encode(*pad([rows[i] for i in part]))
            targets = torch.tensor([written.target] * len(part))
            everything = torch.ones_like(targets, dtype=torch.bool)
            found[part] = score(model.decoder, memory, targets, everything, bos=written.start).double()
        return found.exp()

    return ask


def without_previous(model: SequenceToSequence, written: Written) -> Score:
    """p(target_t | what is kept of target_<t, source) for every t; a mask has a place for each token but the last.

    The step that writes t stands behind the last token before t that was kept.
    """
    source = torch.tensor([written.source], dtype=torch.long)
    with torch.inference_mode():
        begun = model.decoder.begin(model.encode(source, torch.ones_like(source, dtype=torch.bool)))

    @torch.inference_mode()
    def ask(masks: Float[Tensor, "n places"]) -> Float[Tensor, "n t"]:
        rows = [[written.start, *kept] for kept in kept_ids(masks, written.target[:-1])]
        steps = steps_of(masks > 0)
        found = torch.zeros(len(rows), len(written.target), dtype=torch.float64)
        for part in order_by_length([len(row) for row in rows], BATCH_TOKENS):
            inputs, _ = pad([rows[i] for i in part])
            features, _ = model.decoder.features(inputs, begun.select(torch.zeros(len(part), dtype=torch.long)))
            seen = features[torch.arange(len(part))[:, None], steps[part]].flatten(0, 1)  # (n, t, d) → (n·t, d)
            wanted = torch.tensor(written.target).repeat(len(part))
            found[part] = log_probabilities(model.decoder.output, seen, wanted).view(len(part), -1).double()
        return found.exp()

    return ask


def kept_ids(masks: Float[Tensor, "n places"], ids: Sequence[int]) -> list[list[int]]:
    return [[id for id, keep in zip(ids, row, strict=True) if keep] for row in masks.tolist()]


def steps_of(kept: Bool[Tensor, "n places"]) -> Int[Tensor, "n t"]:
    """For each target token how many tokens before it were kept: the place of the last of these behind the start."""
    return torch.cat([torch.zeros(len(kept), 1, dtype=torch.long), kept.long().cumsum(1)], 1)


# ---------------------------------------------------------------- each mask once
def remembered(ask: Score) -> Score:
    """The same, but a mask of 0 and 1 that was asked before is not asked again: short texts have few."""
    known: dict[tuple[bool, ...], Tensor] = {}

    def again(masks: Float[Tensor, "n places"]) -> Float[Tensor, "n outputs"]:
        keys = [tuple(row) for row in (masks > 0).tolist()]
        fresh = list({key: i for i, key in enumerate(keys) if key not in known}.values())
        if fresh:
            known.update(zip([keys[i] for i in fresh], ask(masks[fresh]), strict=True))
        return torch.stack([known[key] for key in keys])

    return again
