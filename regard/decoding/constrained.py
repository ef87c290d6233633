"""Beam search whose outputs contain given phrases: dynamic beam allocation (Post & Vilar 2018).

Hypotheses that have met equally many tokens of their phrases form a bank, and only within a bank are they compared: the
required words are improbable wherever they come, and would never survive among hypotheses that have not paid for them
yet. The beam is dealt out to the banks in turn.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.batching import order_by_length
from regard.decoding.best import best_continuations, likeliest
from regard.decoding.bulk import BATCH_TOKENS, NEVER, Ids, pad, source_rows
from regard.decoding.options import SearchOptions
from regard.decoding.phrases import Phrase, Progress, Seams, Wanted
from regard.decoding.search import Ban, Beam, Hypothesis, beam_search
from regard.errors import DecodingError
from regard.models.interface import SequenceToSequence
from regard.text.special import BOS, EOS

WIDEST = 64  # hypotheses of a sentence
IN_BANK = 2  # hypotheses for each bank, if the beam can be as wide

Continuation = tuple[float, int, int]  # total, hypothesis, token


class Required:
    """An Adjust that lets a sentence end only with all its phrases, none of them once too often, and within its limit.

    It speaks of ids: a search with it must not narrow the output layer. What is known of prefixes is kept for the next
    step.
    """

    def __init__(self, wanted: Sequence[Wanted], limits: Sequence[int], seams: Seams, eos: int) -> None:
        self.wanted, self.limits, self.eos = list(wanted), list(limits), eos
        begins = torch.tensor(list(seams.begins), dtype=torch.bool)
        self.going_on = {False: ~begins, True: begins}  # tokens that begin something, and those that go on with a word
        self.length = 0
        self.known: dict[tuple[int, tuple[int, ...]], Progress] = {}

    def __call__(
        self,
        log_probs: Float[Tensor, "rows vocab"],
        tokens: Int[Tensor, "rows t"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        if tokens.shape[1] != self.length:
            self.length = tokens.shape[1]
            self.known = {key: found for key, found in self.known.items() if len(key[1]) >= self.length}
        for row, prefix, sentence in zip(log_probs, tokens.tolist(), sentences.tolist(), strict=True):
            if self.wanted[sentence].phrases:
                self.forbid(row, tuple(prefix), sentence)
        return log_probs

    def progress(self, sentence: int, tokens: tuple[int, ...]) -> Progress:
        key, wanted = (sentence, tokens), self.wanted[sentence]
        if key not in self.known:
            prefix = tokens[:-1]
            self.known[key] = (
                wanted.step(self.progress(sentence, prefix), prefix, tokens[-1]) if tokens else wanted.start()
            )
        return self.known[key]

    def useful(self, sentence: int, tokens: tuple[int, ...]) -> set[int]:
        """The tokens that bring a phrase forward."""
        return self.wanted[sentence].useful(self.progress(sentence, tokens), tokens)

    def met(self, sentence: int, tokens: tuple[int, ...]) -> int:
        """How many of the tokens that the phrases need are there."""
        wanted = self.wanted[sentence]
        return wanted.tokens - wanted.missing(self.progress(sentence, tokens).readings)

    def forbid(self, row: Float[Tensor, " vocab"], prefix: tuple[int, ...], sentence: int) -> None:
        """Write −∞ over what may not follow the prefix. After any token that may, the rest still fits."""
        wanted, progress = self.wanted[sentence], self.progress(sentence, prefix)
        readings, useful = progress.readings, wanted.useful(progress, prefix)
        room = self.limits[sentence] - len(prefix) - 2  # after this token and the end token
        row[sorted(wanted.surplus(progress, prefix) - useful)] = -torch.inf
        last = prefix[-1] if prefix else None
        fitting = [token for token in sorted(useful) if wanted.missing(wanted.read(readings, last, token)) <= room]
        own, end = row[fitting], row[self.eos].clone()
        for goes_on, tokens in self.going_on.items():
            if wanted.missing(wanted.besides(readings, goes_on=goes_on)) > room:
                row[tokens] = -torch.inf
        row[fitting] = own
        row[self.eos] = end if any(not any(needs) and not rest for needs, rest, _ in readings) else -torch.inf


class Banks:
    """A Pick that deals the beam out to the banks, the fullest first: the best of each, the second best of each, …

    Beside the likeliest continuations it looks at those that bring a phrase forward, and at the likeliest of each
    hypothesis, so that none is lost that has paid for its phrases. A sentence without phrases has one bank, and what is
    picked there are the likeliest.
    """

    def __init__(self, required: Required, width: int) -> None:
        self.required, self.width = required, width

    def __call__(
        self, log_probs: Float[Tensor, "rows vocab"], beam: Beam, k: int
    ) -> tuple[Float[Tensor, "n c"], Int[Tensor, "n c"], Int[Tensor, "n c"]]:
        total, parent, column = best_continuations(log_probs, beam.total, k)
        offers = self.offers(log_probs, beam)
        for place, sentence in enumerate(beam.sentences.tolist()):
            if self.required.wanted[sentence].phrases:
                likely = zip(total[place].tolist(), parent[place].tolist(), column[place].tolist(), strict=True)
                found = self.deal(sentence, beam.tokens[place].tolist(), [*likely, *offers[place]], total.shape[1])
                totals, parents, columns = zip(*found, strict=True)
                total[place] = torch.tensor(totals, dtype=total.dtype)
                parent[place], column[place] = torch.tensor(parents), torch.tensor(columns)
        return total, parent, column

    def offers(self, log_probs: Float[Tensor, "rows vocab"], beam: Beam) -> list[list[Continuation]]:
        """Of each sentence the continuations that deserve a look, however unlikely."""
        (n, w), best = beam.total.shape, likeliest(log_probs).tolist()
        cells, tokens = [], beam.tokens.tolist()
        for place, sentence in enumerate(beam.sentences.tolist()):
            if self.required.wanted[sentence].phrases:
                for h in range(w):
                    looked = {best[place * w + h], *self.required.useful(sentence, tuple(tokens[place][h]))}
                    cells += [(place, h, token) for token in sorted(looked)]
        found: list[list[Continuation]] = [[] for _ in range(n)]
        if cells:
            places, hypotheses, ids = torch.tensor(cells).unbind(1)
            totals = beam.total[places, hypotheses] + log_probs[places * w + hypotheses, ids]
            for (place, h, token), total in zip(cells, totals.tolist(), strict=True):
                found[place].append((total, h, token))
        return found

    def deal(
        self, sentence: int, prefixes: Sequence[Sequence[int]], offered: Sequence[Continuation], k: int
    ) -> list[Continuation]:
        """k continuations, dealt from the banks; what fills up is impossible."""
        totals = {(parent, token): total for total, parent, token in offered if total > -torch.inf}
        order, sizes = [], Counter[int]()
        for (parent, token), total in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
            bank = self.required.met(sentence, (*prefixes[parent], token))
            order.append((sizes[bank], -bank, (total, parent, token)))
            sizes[bank] += 1
        dealt = [one for _, _, one in sorted(order, key=lambda item: item[:2])][:k]
        return dealt + [(-torch.inf, 0, 0)] * (k - len(dealt))


def width_for(tokens: int, beam: int) -> int:
    """The hypotheses to keep for phrases of so many tokens: each bank should hold some."""
    return min(WIDEST, max(beam, IN_BANK * (tokens + 1))) if tokens else beam


def longest(wanted: Wanted, source: int, options: SearchOptions) -> int:
    """The most tokens of an output, the end token among them: what the phrases need comes on top, up to the cap."""
    return min(options.cap, options.max_length(source) + wanted.tokens)


def limit_for(wanted: Wanted, source: int, start: int, options: SearchOptions) -> int:
    """`longest`, which must have room for a prefix of `start` tokens and for the phrases."""
    limit = longest(wanted, source, options)
    if wanted.phrases and start + wanted.tokens >= limit:
        raise DecodingError(
            f"required: {wanted.tokens} tokens beside a prefix of {start} do not fit into an output of {limit}; "
            "require less or raise decoding.cap"
        )
    return limit


@torch.inference_mode()
def translate_with(
    model: SequenceToSequence,
    sources: Sequence[Ids],
    options: SearchOptions,
    required: Sequence[Sequence[Phrase]],
    seams: Seams,
    *,
    prefixes: Sequence[Ids] | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> list[list[Hypothesis]]:
    """The n best target sequences of each source among those that contain its phrases, in the order of the sources.

    Hokamp & Liu 2017; Post & Vilar 2018. Sentences are searched with those that need an equally wide beam, so that
    company changes nothing. A phrase that is cut into tokens in another way than any spelling is not recognised.
    """
    rows = source_rows(sources)
    starts = [[] for _ in rows] if prefixes is None else [list(prefix) for prefix in prefixes]
    wanted = [Wanted(list(phrases), seams) for phrases in required]
    limits = [limit_for(w, len(r), len(s), options) for w, r, s in zip(wanted, rows, starts, strict=True)]
    found: list[list[Hypothesis]] = [[] for _ in rows]
    for part, width in batches(rows, [width_for(one.tokens, options.beam) for one in wanted], batch_tokens):
        tokens, mask = pad([rows[i] for i in part])
        rule = Required([wanted[i] for i in part], [limits[i] for i in part], seams, EOS)
        best = beam_search(
            model.decoder,
            model.encode(tokens, mask),
            max_lengths=torch.tensor([limits[i] for i in part]),
            options=options,
            bos=BOS,
            eos=EOS,
            prefix=[starts[i] for i in part],
            adjust=(Ban(NEVER), rule),
            pick=Banks(rule, width),
        )
        for i, hypotheses in zip(part, best, strict=True):
            found[i] = hypotheses
    return found


def batches(rows: Sequence[Ids], widths: Sequence[int], batch_tokens: int) -> list[tuple[list[int], int]]:
    """Places of rows that are searched together, and how wide: equal widths, similar lengths."""
    found = []
    for width in sorted(set(widths)):
        places = [i for i, own in enumerate(widths) if own == width]
        for part in order_by_length([len(rows[i]) for i in places], max(1, int(batch_tokens / width**0.5))):
            found.append(([places[i] for i in part], width))
    return found
