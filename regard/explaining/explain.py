"""From a finished output to its explanation: the model is replayed once, and asked what it saw and what it expected."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import DecodingError
from regard.explaining.explanation import Alternative, Block, Explanation, Side, Step, Token
from regard.explaining.record import Attention, replay
from regard.explaining.roles import entropy, roles
from regard.explaining.sides import separates
from regard.models.interface import SequenceToSequence
from regard.text.special import BOS, PAD, UNK
from regard.text.tokeniser import Tokeniser

MOST_WEIGHTS = 10_000_000  # in one explanation: about 100 MB of JSON
DECIMALS = 6
NEVER = (PAD, UNK, BOS)


@dataclass(frozen=True)
class Output:
    """What is to be explained: a target, for a source if the model reads one, behind the token that it begins with.

    The target holds the end token if the model wrote it. `penalty` is the search's length penalty.
    """

    model: str
    source: Side | None
    start: Token
    target: Side
    penalty: float = 0.0


def explain_output(model: SequenceToSequence, output: Output, tokeniser: Tokeniser, alternatives: int) -> Explanation:
    """Of each target token its probability and the likeliest tokens in its place; of each head where it looked.

    `tokeniser` is that of the target.
    """
    read = output.source.tokens if output.source else ()
    written = output.target.tokens
    before = (output.start, *written[:-1])
    source = row(read)
    played = replay(model, source, torch.ones_like(source, dtype=torch.bool), row(before))
    log_p = played.output[0].double().log_softmax(-1)
    total = float(log_p.gather(-1, row(written).mT).sum())
    if not math.isfinite(total):  # published models have tokens that they never write
        raise DecodingError("target: holds a token that this model can never write; give another one")
    return Explanation(
        model=output.model,
        source=output.source,
        start=output.start,
        target=output.target,
        steps=tuple(steps_of(log_p, written, tokeniser, alternatives)),
        log_probability=total,
        score=total / len(written) ** output.penalty,
        attention=blocks(played.attentions, read, before),
    )


def explain_reading(model: nn.Module, name: str, source: Side) -> Explanation:
    """Where each head of an encoder looked while it read one text, as BERT does: tokens, mask and segments in."""
    tokens = row(source.tokens)
    played = replay(model, tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens))
    return Explanation(
        model=name,
        source=source,
        start=None,
        target=None,
        steps=(),
        log_probability=None,
        score=None,
        attention=blocks(played.attentions, source.tokens, ()),
    )


def row(tokens: Sequence[Token]) -> Int[Tensor, "1 t"]:
    return torch.tensor([[token.id for token in tokens]], dtype=torch.long)


def steps_of(
    log_p: Float[Tensor, "t vocab"], written: Sequence[Token], tokeniser: Tokeniser, alternatives: int
) -> Iterator[Step]:
    """One step for each token that was written. No search writes `NEVER`: these are no alternatives."""
    possible = log_p.index_fill(-1, torch.tensor(NEVER), -torch.inf)
    best = possible.topk(min(alternatives, log_p.shape[-1] - len(NEVER)))
    tops, places = best.values.exp().tolist(), best.indices.tolist()
    for i, (token, top, ids) in enumerate(zip(written, tops, places, strict=True)):
        own, likeliest = log_p[i, token.id], zip(ids, top, strict=True)
        yield Step(
            probability=float(own.exp()),
            rank=1 + int((possible[i] > own).sum()),
            alternatives=tuple(Alternative(id=id, text=tokeniser.name(id), probability=p) for id, p in likeliest),
        )


def blocks(attentions: Sequence[Attention], source: Sequence[Token], before: Sequence[Token]) -> tuple[Block, ...]:
    """One block for each head. Keys are the tokens of the source, and of a decoder map what was read `before`."""
    count = sum(attention.weights.numel() for attention in attentions)
    if count > MOST_WEIGHTS:
        raise DecodingError(
            f"text: {count:,} attention weights for all its tokens, expected at most {MOST_WEIGHTS:,}; "
            "split it into sentences"
        )
    return tuple(
        block
        for attention in attentions
        for block in heads(attention, before if attention.kind == "decoder" else source)
    )


def heads(attention: Attention, keys: Sequence[Token]) -> Iterator[Block]:
    separators = torch.tensor([separates(token) for token in keys], dtype=torch.bool)
    for head, weights in enumerate(attention.weights, start=1):
        yield Block(
            kind=attention.kind,
            layer=attention.layer + 1,
            head=head,
            entropy=float(entropy(weights)),
            roles=roles(weights, attention.kind, separators),
            weights=weights.double().round(decimals=DECIMALS).tolist(),
        )
