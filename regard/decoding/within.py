"""Many sentences through a search that keeps to a rule: batched by length, given back in the order they came."""

from collections.abc import Callable, Sequence

import torch

from regard.decoding.batching import order_by_length
from regard.decoding.bulk import BATCH_TOKENS, Ids, pad, source_rows
from regard.decoding.grammar import WellFormed
from regard.decoding.options import SearchOptions
from regard.decoding.search import Hypothesis, beam_search
from regard.models.interface import SequenceToSequence
from regard.text.special import BOS, EOS


@torch.inference_mode()
def search_within(
    model: SequenceToSequence,
    sources: Sequence[Ids],
    options: SearchOptions,
    rule: Callable[[list[int]], WellFormed],
    *,
    batch_tokens: int = BATCH_TOKENS,
) -> list[list[Hypothesis]]:
    """The n best target sequences of each source among those that the rule allows, in the order of the sources.

    `rule` makes the rule of one batch, given the places of its sources. It decides how long an output may be, and
    speaks of ids: there is no shortlist here, whose columns are others.
    """
    rows = source_rows(sources)
    found: list[list[Hypothesis]] = [[] for _ in rows]
    for part in order_by_length([len(row) for row in rows], max(1, int(batch_tokens / options.beam**0.5))):
        tokens, mask = pad([rows[i] for i in part])
        allowed = rule(part)
        best = beam_search(
            model.decoder,
            model.encode(tokens, mask),
            max_lengths=allowed.max_lengths,
            options=options,
            bos=BOS,
            eos=EOS,
            adjust=(allowed,),
        )
        for i, hypotheses in zip(part, best, strict=True):
            found[i] = hypotheses
    return found
