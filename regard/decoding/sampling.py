"""Random sequences from the model: temperature, top-k and top-p as pure functions, and the loop that draws."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.options import SamplingOptions
from regard.decoding.search import Adjust, Hypothesis, check_lengths, next_log_probs
from regard.errors import DecodingError
from regard.models.interface import Decoder, Memory


def keep_top_k(logits: Float[Tensor, "rows vocab"], k: int) -> Float[Tensor, "rows vocab"]:
    """logits with -inf everywhere but at the k largest; k = 0 keeps all. Exactly k stay, also among equals."""
    if k == 0 or k >= logits.shape[-1]:
        return logits
    values, index = logits.topk(k)
    return torch.full_like(logits, -torch.inf).scatter(-1, index, values)


def keep_top_p(logits: Float[Tensor, "rows vocab"], p: float) -> Float[Tensor, "rows vocab"]:
    """logits with -inf outside the smallest set of likeliest tokens whose probabilities reach p; p = 1 keeps all.

    A token stays while the mass before it is below p, so the likeliest always does. Holtzman et al. 2020, §3.1.
    """
    if p >= 1:
        return logits
    ranked, index = logits.sort(dim=-1, descending=True)
    probabilities = ranked.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    # The likeliest by name: rounding must never empty the set.
    outside = (before >= p).index_fill(-1, torch.zeros(1, dtype=torch.long, device=logits.device), False)
    return logits.masked_fill(outside.gather(-1, index.argsort(-1)), -torch.inf)


def warp(log_probs: Float[Tensor, "rows vocab"], options: SamplingOptions) -> Float[Tensor, "rows vocab"]:
    """The logits that are drawn from: log p / temperature, then the top k, then the top p of what is left."""
    return keep_top_p(keep_top_k(log_probs / options.temperature, options.top_k), options.top_p)


@torch.no_grad()
def sample(
    decoder: Decoder[Any],
    memory: Memory,
    *,
    max_lengths: Int[Tensor, " n"],
    options: SamplingOptions,
    bos: int,
    eos: int,
    generator: torch.Generator,
    adjust: Sequence[Adjust] = (),
) -> list[list[Hypothesis]]:
    """`options.samples` sequences for each sentence, in the order drawn; they may repeat.

    The log-probabilities reported are the model's own (after `adjust`), not those of the warped distribution, and the
    score is their sum. `max_lengths` count the end token. The caller puts the model in eval mode.
    """
    check_lengths(max_lengths, memory)
    rows = torch.arange(len(max_lengths), device=max_lengths.device).repeat_interleave(options.samples)
    sentences, limits = rows, max_lengths[rows]
    drawn: list[Hypothesis | None] = [None] * len(rows)
    slots = torch.arange(len(rows), device=rows.device)
    state, last = decoder.begin(memory).select(rows), rows.new_full((len(rows), 1), bos)
    tokens, steps = last[:, :0], torch.zeros(len(rows), 0, device=rows.device)
    while len(slots):
        log_probs, state = next_log_probs(decoder, decoder.output, last, state)
        for change in adjust:
            log_probs = change(log_probs, tokens, sentences)
        last = draw(warp(log_probs, options), generator)
        tokens, steps = torch.cat([tokens, last], 1), torch.cat([steps, log_probs.gather(1, last)], 1)
        ended = last[:, 0] == eos
        over = ended | (limits <= tokens.shape[1])
        if over.any():
            for row in over.nonzero().flatten().tolist():
                drawn[int(slots[row])] = hypothesis(tokens[row], steps[row], finished=bool(ended[row]))
            stay = (~over).nonzero().flatten()
            slots, sentences, limits, last = slots[stay], sentences[stay], limits[stay], last[stay]
            tokens, steps, state = tokens[stay], steps[stay], state.select(stay)
    every = [h for h in drawn if h is not None]
    return [every[i : i + options.samples] for i in range(0, len(every), options.samples)]


def draw(logits: Float[Tensor, "rows vocab"], generator: torch.Generator) -> Int[Tensor, "rows 1"]:
    """One token per row, with probability softmax(logits)."""
    probabilities = logits.softmax(-1)
    if not probabilities.isfinite().all():
        raise DecodingError(
            "no token has a finite probability; a constraint forbids everything or the model's weights are not finite"
        )
    return torch.multinomial(probabilities, 1, generator=generator)


def hypothesis(tokens: Int[Tensor, " t"], steps: Float[Tensor, " t"], *, finished: bool) -> Hypothesis:
    body, values = tokens.tolist(), tuple(steps.tolist())
    total = sum(values)
    return Hypothesis(tuple(body[:-1] if finished else body), total, total, finished, values)
