"""Many sentences of many lengths through one search: batched by length, given back in the order they came."""

import hashlib
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.decoding.batching import order_by_length
from regard.decoding.greedy import greedy_search
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.sampling import sample
from regard.decoding.scoring import score
from regard.decoding.search import Ban, Hypothesis, beam_search
from regard.decoding.shortlist import Narrowed, Shortlist
from regard.models.interface import SequenceToSequence
from regard.text.special import BOS, EOS, PAD, UNK

Ids = Sequence[int]
NEVER = (PAD, UNK, BOS)  # what no output may hold
LONGEST = 10_000  # source tokens: beyond, attention takes minutes and gigabytes for what no model here was trained on
BATCH_TOKENS = 4096  # of sources, for one hypothesis each; measured, and so is the root of the beam's width below


def pad(rows: Sequence[Ids]) -> tuple[Int[Tensor, "n t"], Bool[Tensor, "n t"]]:
    """Rows of ids as one rectangle, filled on the right, and which of its cells are real."""
    lengths = torch.tensor([len(row) for row in rows])
    width = int(lengths.max())
    mask = torch.arange(width) < lengths[:, None]
    tokens = torch.full((len(rows), width), PAD)
    tokens[mask] = torch.tensor([token for row in rows for token in row])
    return tokens, mask


def source_rows(sources: Sequence[Ids]) -> list[list[int]]:
    """Each source closed by the end token, as in training."""
    return [[*source, EOS] for source in sources]


def max_lengths(mask: Bool[Tensor, "n s"], options: SearchOptions) -> Int[Tensor, " n"]:
    """min(cap, ratio · |source| + extra) target tokens per row, so that no input can run away."""
    return torch.tensor([options.max_length(source) for source in mask.sum(1).tolist()])


@torch.inference_mode()
def translate(
    model: SequenceToSequence,
    sources: Sequence[Ids],
    options: SearchOptions,
    *,
    prefixes: Sequence[Ids] | None = None,
    shortlist: Shortlist | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> list[list[Hypothesis]]:
    """The n best target sequences of each source, in the order of the sources."""
    rows = source_rows(sources)
    found: list[list[Hypothesis]] = [[] for _ in rows]
    for part in order_by_length([len(row) for row in rows], max(1, int(batch_tokens / options.beam**0.5))):
        tokens, mask = pad([rows[i] for i in part])
        starts = [[] if prefixes is None else list(prefixes[i]) for i in part]
        narrow = narrowed(model, shortlist, [rows[i] for i in part], starts)
        best = beam_search(
            model.decoder,
            model.encode(tokens, mask),
            max_lengths=max_lengths(mask, options),
            options=options,
            bos=BOS,
            eos=EOS,
            prefix=starts,
            adjust=(Ban(never(narrow)),),
            narrow=narrow,
        )
        for i, hypotheses in zip(part, best, strict=True):
            found[i] = hypotheses
    return found


@torch.inference_mode()
def write(
    model: SequenceToSequence,
    sources: Sequence[Ids],
    options: SearchOptions,
    *,
    shortlist: Shortlist | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> list[tuple[int, ...]]:
    """The best target sequence of each source, and nothing about it: with a beam of 1, no probability is computed."""
    if options.beam > 1:
        found = translate(model, sources, options, shortlist=shortlist, batch_tokens=batch_tokens)
        return [hypotheses[0].tokens for hypotheses in found]
    rows = source_rows(sources)
    written: list[tuple[int, ...]] = [()] * len(rows)
    for part in order_by_length([len(row) for row in rows], batch_tokens):
        tokens, mask = pad([rows[i] for i in part])
        narrow = narrowed(model, shortlist, [rows[i] for i in part], [])
        lines = greedy_search(
            model.decoder,
            model.encode(tokens, mask),
            max_lengths=max_lengths(mask, options),
            bos=BOS,
            eos=EOS,
            never=never(narrow),
            narrow=narrow,
        )
        for i, line in zip(part, lines, strict=True):
            written[i] = tuple(line[:-1] if line[-1] == EOS else line)
    return written


def narrowed(
    model: SequenceToSequence, shortlist: Shortlist | None, sources: Sequence[Ids], starts: Sequence[Ids]
) -> Narrowed | None:
    """The output layer of what these sources can turn into; none without a shortlist."""
    return None if shortlist is None else shortlist.narrow(model.decoder.output, sources, starts)


def never(narrow: Narrowed | None) -> list[int]:
    """The columns that no output may hold."""
    return list(NEVER) if narrow is None else narrow.columns(NEVER).tolist()


@torch.inference_mode()
def draw(
    model: SequenceToSequence,
    sources: Sequence[Ids],
    options: SamplingOptions,
    lengths: SearchOptions,
    seed: int,
) -> list[list[Hypothesis]]:
    """`options.samples` random target sequences of each source, a function of the seed and that source alone."""
    found = []
    for row in source_rows(sources):
        tokens, mask = pad([row])
        found += sample(
            model.decoder,
            model.encode(tokens, mask),
            max_lengths=max_lengths(mask, lengths),
            options=options,
            bos=BOS,
            eos=EOS,
            generator=generator_for(row, seed),
            adjust=(Ban(NEVER),),
        )
    return found


def generator_for(row: Ids, seed: int) -> torch.Generator:
    # Hashed, because neighbouring seeds of torch's generator differ in few bits, and it reads only 32 of them.
    digest = hashlib.blake2b(f"{seed}/{list(row)}".encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest))


@torch.inference_mode()
def score_pairs(
    model: SequenceToSequence, sources: Sequence[Ids], targets: Sequence[Ids], *, batch_tokens: int = BATCH_TOKENS
) -> list[list[float]]:
    """log p of every target token (the end token last) given its source."""
    rows = source_rows(sources)
    goals = source_rows(targets)
    found: list[list[float]] = [[] for _ in rows]
    lengths = [max(len(a), len(b)) for a, b in zip(rows, goals, strict=True)]
    for part in order_by_length(lengths, batch_tokens):
        tokens, mask = pad([rows[i] for i in part])
        outputs, kept = pad([goals[i] for i in part])
        scores = score(model.decoder, model.encode(tokens, mask), outputs, kept, bos=BOS)
        for i, line in zip(part, scores.tolist(), strict=True):
            found[i] = line[: len(goals[i])]
    return found
