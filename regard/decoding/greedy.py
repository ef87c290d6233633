"""The likeliest token at every step: what beam search of width 1 finds, without the bookkeeping of a beam."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.best import likeliest, packed
from regard.decoding.search import WASTE, check_lengths, stuck
from regard.decoding.shortlist import Narrowed
from regard.models.interface import Decoder, Memory
from regard.native.inference import Choice, Panels, native


@runtime_checkable
class Writer(Protocol):
    """A decoder that can do all of it by itself, or says None; an empty line is a sentence that is stuck."""

    def write(self, memory: Memory, limits: Int[Tensor, " n"], choice: Choice) -> list[list[int]] | None: ...


@torch.no_grad()
def greedy_search(
    decoder: Decoder[Any],
    memory: Memory,
    *,
    max_lengths: Int[Tensor, " n"],
    bos: int,
    eos: int,
    never: Sequence[int] = (),
    narrow: Narrowed | None = None,
) -> list[list[int]]:
    """For each sentence argmax p(token | tokens before), token by token; the end token is the last, if it came.

    No probability is computed: the largest logit is enough. The columns `never` are not chosen. The caller puts the
    model in eval mode.
    """
    check_lengths(max_lengths, memory)
    output, ids = narrow or decoder.output, narrow.ids if narrow else None
    panels = packed(output)
    others = [len(narrow.ids)] if narrow and narrow.others and panels else []
    banned = torch.tensor([*never, *others], dtype=torch.long)
    if panels and isinstance(decoder, Writer):
        lines = decoder.write(memory, max_lengths, Choice(panels, banned, ids, bos, eos))
        if lines is not None:
            return complete(lines)
    state, last = decoder.begin(memory), max_lengths.new_full((len(max_lengths), 1), bos, dtype=torch.long)
    written: list[list[int]] = [[] for _ in max_lengths]
    rows, live, limits = list(range(len(written))), set(range(len(written))), max_lengths.tolist()
    while live:
        features, state = decoder.features(last, state)
        most, column = likeliest_of(features[:, -1], output, panels, banned)
        refuse_stuck(most, rows)
        last = (column if ids is None else ids[column])[:, None]
        for sentence, token in zip(rows, last[:, 0].tolist(), strict=True):
            if sentence in live:
                written[sentence].append(token)
                if token == eos or len(written[sentence]) == limits[sentence]:
                    live.remove(sentence)
        if live and len(rows) - len(live) >= WASTE * len(rows):
            going = torch.tensor([row for row, sentence in enumerate(rows) if sentence in live])
            rows, last, state = [s for s in rows if s in live], last[going], state.select(going)
    return written


def complete(lines: list[list[int]]) -> list[list[int]]:
    for sentence, line in enumerate(lines):
        if not line:
            raise stuck(sentence)
    return lines


def likeliest_of(
    features: Float[Tensor, "rows d"], output: Any, panels: Panels | None, banned: Int[Tensor, " b"]
) -> tuple[Float[Tensor, " rows"], Int[Tensor, " rows"]]:
    """The largest logit of each row, and its column."""
    if native and panels:
        return native.largest_of_product(features.contiguous(), panels, banned)
    logits = output(features)
    if len(banned):
        logits = logits.index_fill_(1, banned, -torch.inf)
    column = likeliest(logits)
    return logits.gather(1, column[:, None])[:, 0], column


def refuse_stuck(best: Float[Tensor, " rows"], sentences: Sequence[int]) -> None:
    """Where even the best logit is not finite, everything is forbidden or the model computes NaN."""
    finite = best.isfinite()
    if not finite.all():
        raise stuck(sentences[int((~finite).nonzero()[0, 0])])
