"""Beam search over any decoder; width 1 is greedy.

Letters: n sentences still searched, w live hypotheses of each, t tokens so far; the decoder sees rows = n·w.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.best import best_continuations, best_of_features, log_softmax_, packed
from regard.decoding.options import SearchOptions
from regard.decoding.shortlist import Narrowed
from regard.errors import DecodingError
from regard.models.interface import Decoder, Memory, State

WASTE = 0.1  # of the rows may be over before they are dropped
ROWS = 80  # that go through the output layer at a time: what it gives for all would not fit into the cache


@dataclass(frozen=True)
class Hypothesis:
    """A decoded sequence, without its start and end tokens.

    `token_log_probs` has one entry per predicted token, so one more than `tokens` when the end token was reached; their
    sum is `log_probability`, and `score` is log_probability / len(token_log_probs)**length_penalty.
    `finished` is false when the maximum length cut the sequence.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    finished: bool
    token_log_probs: tuple[float, ...]


@runtime_checkable
class Adjust(Protocol):
    """Changes what the next token may be. May write into `log_probs`; must not raise any entry above 0.

    `tokens` are the tokens so far, without the start token; `sentences` says which row of the batch each row serves.
    """

    def __call__(
        self,
        log_probs: Float[Tensor, "rows vocab"],
        tokens: Int[Tensor, "rows t"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]: ...


class Ban:
    """An Adjust that never lets these ids out; the probabilities of the others stay as the model gave them."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = torch.tensor(list(ids), dtype=torch.long)

    def __call__(
        self,
        log_probs: Float[Tensor, "rows vocab"],
        tokens: Int[Tensor, "rows t"],  # noqa: ARG002
        sentences: Int[Tensor, " rows"],  # noqa: ARG002
    ) -> Float[Tensor, "rows vocab"]:
        return log_probs.index_fill_(1, self.ids.to(log_probs.device), -torch.inf)


@dataclass(frozen=True)
class Beam:
    """Hypotheses of each sentence, best first; `total` is Σ log_probs, or -inf where there is none."""

    sentences: Int[Tensor, " n"]
    total: Float[Tensor, "n w"]
    tokens: Int[Tensor, "n w t"]
    log_probs: Float[Tensor, "n w t"]

    def pick(self, columns: Int[Tensor, "n m"]) -> "Beam":
        rows = torch.arange(len(columns), device=columns.device)[:, None]
        return Beam(
            self.sentences, self.total[rows, columns], self.tokens[rows, columns], self.log_probs[rows, columns]
        )

    def part(self, rows: slice) -> "Beam":
        return Beam(self.sentences[rows], self.total[rows], self.tokens[rows], self.log_probs[rows])

    def keep(self, rows: Int[Tensor, " m"], columns: int) -> "Beam":
        """These sentences, and of each the first `columns` hypotheses."""
        cut = slice(columns)
        return Beam(self.sentences[rows], self.total[rows, cut], self.tokens[rows, cut], self.log_probs[rows, cut])


class Found:
    """The finished hypotheses of each sentence, and the score that a newcomer must beat to be among the n best."""

    def __init__(self, sentences: int, options: SearchOptions, device: torch.device) -> None:
        self.n_best, self.length_penalty = options.n_best, options.length_penalty
        self.lists: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.counts = torch.zeros(sentences, dtype=torch.long, device=device)
        self.to_beat = torch.full((sentences,), -torch.inf, dtype=torch.float64, device=device)

    def add(self, beam: Beam, cells: Int[Tensor, "c 2"], *, finished: bool) -> None:
        """Take over these cells (row, column) of the beam."""
        if not len(cells):
            return
        rows, columns = cells.unbind(1)
        touched = beam.sentences[rows].tolist()
        parts = (part[rows, columns].tolist() for part in (beam.tokens, beam.log_probs, beam.total))
        for sentence, body, steps, total in zip(touched, *parts, strict=True):
            score = total / len(steps) ** self.length_penalty
            tokens = tuple(body[:-1] if finished else body)
            self.lists[sentence].append(Hypothesis(tokens, score, total, finished, tuple(steps)))
        for sentence in set(touched):
            found = self.lists[sentence]
            found.sort(key=lambda h: -h.score)  # stable: of equals, the first found stays first
            self.counts[sentence] = len(found)
            if len(found) >= self.n_best:
                self.to_beat[sentence] = found[self.n_best - 1].score


@runtime_checkable
class Pick(Protocol):
    """Says which continuations are worth a place, where the likeliest are not: best first, of `k` at most.

    Gives what `best_continuations` gives: totals, and of each the hypothesis and the column; −∞ fills up. The search
    keeps `width` hypotheses of each sentence.
    """

    width: int

    def __call__(
        self, log_probs: Float[Tensor, "rows vocab"], beam: Beam, k: int
    ) -> tuple[Float[Tensor, "n c"], Int[Tensor, "n c"], Int[Tensor, "n c"]]: ...


class Likeliest:
    """The Pick of an ordinary search."""

    def __init__(self, width: int) -> None:
        self.width = width

    def __call__(
        self, log_probs: Float[Tensor, "rows vocab"], beam: Beam, k: int
    ) -> tuple[Float[Tensor, "n c"], Int[Tensor, "n c"], Int[Tensor, "n c"]]:
        return best_continuations(log_probs, beam.total, k)


Continuations = tuple[Tensor, Tensor, Tensor, Tensor]
# features of a beam's rows → its k best continuations: total, hypothesis, column, log p of the token
Choose = Callable[[Tensor, Beam, int], Continuations]


def extend(beam: Beam, found: Continuations, ids: Int[Tensor, " columns"] | None) -> tuple[Beam, Int[Tensor, "n k"]]:
    """Each sentence's best continuations by one token, best first, and which hypothesis each of them continues.

    `ids` are the tokens that the columns stand for; none: each for itself.
    """
    total, parent, column, step = found
    old = beam.pick(parent)
    tokens = torch.cat([old.tokens, (column if ids is None else ids[column])[..., None]], dim=-1)
    return Beam(beam.sentences, total, tokens, torch.cat([old.log_probs, step[..., None]], dim=-1)), parent


def free(layer: Any, narrow: Narrowed | None, never: Int[Tensor, " b"] | None) -> Choose | None:
    """The likeliest of this output layer, where nothing is asked but that some columns are never chosen, in one pass.

    None where more is asked, or C cannot compute with the layer.
    """
    panels = packed(layer) if never is not None else None
    if panels is None or never is None:
        return None

    def chosen(features: Float[Tensor, "rows d"], beam: Beam, k: int) -> Continuations:
        return best_of_features(features, panels, narrow.more(features) if narrow else None, beam.total, never, k)

    return chosen


def piecewise(choose: Choose) -> Choose:
    """The same, for a few sentences at a time."""

    def in_parts(features: Float[Tensor, "rows d"], beam: Beam, k: int) -> Continuations:
        n, width = beam.total.shape
        count = max(1, ROWS // width)
        parts = (slice(start, start + count) for start in range(0, n, count))
        found = [choose(features[part.start * width : part.stop * width], beam.part(part), k) for part in parts]
        total, parent, column, step = (torch.cat(pieces) for pieces in zip(*found, strict=True))
        return total, parent, column, step

    return in_parts


def attainable(
    best: Float[Tensor, " n"], length: int, limits: Int[Tensor, " n"], length_penalty: float
) -> Float[Tensor, " n"]:
    """max of log p / l**α over every continuation of a live hypothesis, with length < l ≤ limit.

    log p ≤ 0 and only falls, so the bound is best / l**α at the longest l for α > 0 and at the shortest otherwise.
    """
    reach = limits.double() if length_penalty > 0 else torch.full_like(best, length + 1, dtype=torch.float64)
    return best.double() / reach**length_penalty


def prefix_table(prefix: Sequence[Sequence[int]] | None, limits: Int[Tensor, " n"], eos: int) -> Int[Tensor, "n p"]:
    """The forced tokens of each sentence, -1 where the search is free."""
    if prefix is None:
        return limits.new_full((len(limits), 0), -1)
    if len(prefix) != len(limits):
        raise DecodingError(f"prefix: {len(prefix)} prefixes for {len(limits)} sentences; give one each, [] for none")
    for row, (tokens, limit) in enumerate(zip(prefix, limits.tolist(), strict=True)):
        if len(tokens) >= limit:
            raise DecodingError(
                f"prefix of sentence {row}: {len(tokens)} tokens leave no room below the maximum length {limit}; "
                "shorten it or raise max_ratio, max_extra or cap"
            )
        if eos in tokens or any(token < 0 for token in tokens):
            raise DecodingError(
                f"prefix of sentence {row}: {list(tokens)} holds the end token or a negative id; remove it"
            )
    table = limits.new_full((len(prefix), max((len(tokens) for tokens in prefix), default=0)), -1)
    for row, tokens in enumerate(prefix):
        table[row, : len(tokens)] = torch.tensor(tokens, dtype=table.dtype)
    return table


def constrain(
    log_probs: Float[Tensor, "rows vocab"], beam: Beam, forced: Int[Tensor, "n p"], adjust: Sequence[Adjust]
) -> Float[Tensor, "rows vocab"]:
    """log_probs after every Adjust; where the next token is forced, that token alone, at the model's own value."""
    sentences = beam.sentences.repeat_interleave(beam.total.shape[1])
    tokens = beam.tokens.flatten(0, 1)
    position = tokens.shape[1]
    wanted = forced[sentences, position, None] if position < forced.shape[1] else None
    own = None if wanted is None else log_probs.gather(1, wanted.clamp(min=0))
    for change in adjust:
        log_probs = change(log_probs, tokens, sentences)
    if wanted is None or own is None:
        return log_probs
    alone = torch.full_like(log_probs, -torch.inf).scatter(1, wanted.clamp(min=0), own)
    return torch.where(wanted >= 0, alone, log_probs)


def banned(adjust: Sequence[Adjust], narrow: Narrowed | None) -> Int[Tensor, " b"] | None:
    """The columns that may not be chosen, the one of what is not listed among them; none if `adjust` does more."""
    if not all(isinstance(change, Ban) for change in adjust):
        return None
    others = [len(narrow.ids)] if narrow and narrow.others else []
    ids = [id for change in adjust if isinstance(change, Ban) for id in change.ids.tolist()]
    return torch.tensor(ids + others, dtype=torch.long)


def next_log_probs(
    decoder: Decoder[Any], output: Callable[[Tensor], Tensor], tokens: Int[Tensor, "rows t"], state: State
) -> tuple[Float[Tensor, "rows columns"], State]:
    """log p(next token | everything so far); only the last position goes through the output layer."""
    features, state = decoder.features(tokens, state)
    return log_softmax_(output(features[:, -1])), state


def check_lengths(max_lengths: Int[Tensor, " n"], memory: Memory) -> None:
    if len(max_lengths) != len(memory.values):
        raise DecodingError(
            f"max_lengths: {len(max_lengths)} lengths for {len(memory.values)} sentences; give one each"
        )
    if len(max_lengths) and int(max_lengths.min()) < 1:
        raise DecodingError(
            f"max_lengths: found {int(max_lengths.min())}; every sentence needs room for one token or more"
        )


def check_possible(totals: Float[Tensor, "n k"], beam: Beam) -> None:
    """Refuse to go on where no continuation has a probability: all tokens are banned, or the model computes NaN."""
    impossible = beam.sentences[~totals[:, 0].isfinite() & (beam.total[:, 0] > -torch.inf)].tolist()
    if impossible:
        raise stuck(impossible[0])


def stuck(sentence: int) -> DecodingError:
    return DecodingError(
        f"sentence {sentence}: no token has a finite log-probability; "
        "a constraint forbids everything or the model's weights are not finite"
    )


def collect(grown: Beam, ends: Bool[Tensor, "n k"], found: Found, width: int) -> None:
    """Move to `found` what ends among the `width` best; an ending further down is no better than what goes on."""
    complete = ends & (grown.total > -torch.inf)
    found.add(grown, complete[:, :width].nonzero(), finished=True)


def collect_cut(beam: Beam, over: Bool[Tensor, " n"], found: Found) -> None:
    """A sentence that stops with nothing finished has met its maximum length: what it has is better than nothing."""
    empty = over & (found.counts[beam.sentences] == 0)
    found.add(beam, (empty[:, None] & (beam.total > -torch.inf)).nonzero(), finished=False)


def first_alive(grown: Beam, ends: Bool[Tensor, "n k"], width: int) -> tuple[Beam, Int[Tensor, "n w"]]:
    """The first `width` continuations that do not end, in their order, and their columns; −∞ where there are fewer."""
    total = grown.total.masked_fill(ends, -torch.inf)
    order = (total == -torch.inf).int().argsort(dim=1, stable=True)[:, :width]
    return replace(grown.pick(order), total=total.gather(1, order)), order


def is_over(live: Beam, found: Found, limits: Int[Tensor, " n"], options: SearchOptions) -> Bool[Tensor, " n"]:
    """Which sentences need no further step: see beam_search."""
    length, best = live.tokens.shape[-1], live.total.amax(1)
    to_beat = found.to_beat[live.sentences]
    hopeless = attainable(best, length, limits, options.length_penalty) <= to_beat
    enough = found.counts[live.sentences] >= options.beam * (options.patience or 1.0)
    if options.patience is None:
        # A sure model's poor hypotheses end early and soon make up the number: they must not cut off the good one.
        enough &= best.double() / float(length**options.length_penalty) <= to_beat
    return hopeless | enough | (length >= limits) | (best == -torch.inf)


def nothing_yet(n: int, device: torch.device) -> Beam:
    """One empty hypothesis per sentence, so that the first step is not computed `width` times over."""
    tokens = torch.zeros(n, 1, 0, dtype=torch.long, device=device)
    return Beam(torch.arange(n, device=device), torch.zeros(n, 1, device=device), tokens, tokens.float())


def go_on(live: Beam, origin: Int[Tensor, "n w"], over: Bool[Tensor, " n"]) -> tuple[Beam, Int[Tensor, " rows"]]:
    """The sentences that go on, without the columns that none of them fills, and the decoder's row behind each cell.

    A few that are over stay, with nothing alive in them: a decoder that drops rows copies all others.
    """
    going, ended = ~over, int(over.sum())
    columns = int((live.total > -torch.inf).sum(1)[going].amax()) if ended < len(over) else 0
    if 0 < ended < WASTE * len(over):
        live, going = replace(live, total=live.total.masked_fill(over[:, None], -torch.inf)), torch.ones_like(over)
    sentences = going.nonzero().flatten()
    return live.keep(sentences, columns), origin[sentences, :columns].flatten()


@torch.no_grad()
def beam_search(
    decoder: Decoder[Any],
    memory: Memory,
    *,
    max_lengths: Int[Tensor, " n"],
    options: SearchOptions,
    bos: int,
    eos: int,
    prefix: Sequence[Sequence[int]] | None = None,
    adjust: Sequence[Adjust] = (),
    narrow: Narrowed | None = None,
    pick: Pick | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence the n_best hypotheses under log p / length**length_penalty, best first.

    A sentence is searched until `beam` hypotheses have finished and none alive is ahead of the n best (with a patience:
    until so many times `beam` have finished), its maximum length is met, or nothing alive can still enter its n best;
    the last changes no result. Lengths count the end token, and so do `max_lengths`. A hypothesis cut at the maximum
    length is returned only where none finished. Tokens of a forced `prefix` count in the scores. With a `narrow` output
    layer only its tokens are considered, all of `prefix` must be among them, and `adjust` speaks of its columns. With a
    `pick`, other hypotheses than the likeliest live on. The caller puts the model in eval mode.
    """
    check_lengths(max_lengths, memory)
    best: Pick = pick or Likeliest(options.beam)
    n, width, device = len(max_lengths), best.width, max_lengths.device
    forced, found = prefix_table(prefix, max_lengths, eos), Found(n, options, device)
    forced = forced if narrow is None else narrow.columns_of(forced)
    state, last = decoder.begin(memory), max_lengths.new_full((n, 1), bos, dtype=torch.long)
    beam, ids = nothing_yet(n, device), narrow.ids if narrow else None

    def constrained(features: Float[Tensor, "rows d"], part: Beam, k: int) -> Continuations:
        logits = narrow.logits(features) if narrow else decoder.output(features)
        log_probs = constrain(log_softmax_(logits)[:, : len(narrow.ids) if narrow else None], part, forced, adjust)
        total, parent, column = best(log_probs, part, k)
        # Not total − the total before: it would be rounded.
        step = log_probs[
            parent + part.total.shape[1] * torch.arange(len(parent), device=parent.device)[:, None], column
        ]
        return total, parent, column, step

    never = banned(adjust, narrow) if not pick and not forced.shape[1] else None
    choose = free(narrow or decoder.output, narrow, never) or piecewise(constrained)
    while len(beam.sentences):
        features, state = decoder.features(last, state)
        # Each live hypothesis ends in one way only, so twice the width holds `width` that go on.
        grown, parent = extend(beam, choose(features[:, -1], beam, 2 * width), ids)
        check_possible(grown.total, beam)
        ends = grown.tokens[..., -1] == eos
        collect(grown, ends, found, width)
        live, order = first_alive(grown, ends, width)
        over = is_over(live, found, max_lengths[live.sentences], options)
        collect_cut(live, over, found)
        origin = torch.arange(len(last), device=device).reshape(beam.total.shape).gather(1, parent.gather(1, order))
        beam, rows = go_on(live, origin, over)
        if len(rows) != len(last) or not torch.equal(rows, torch.arange(len(rows), device=device)):
            state = state.select(rows)
        last = beam.tokens[..., -1].reshape(-1, 1)
    return [hypotheses[: options.n_best] for hypotheses in found.lists]
