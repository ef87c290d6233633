"""Why a text has a label: where each head of a classifier looked, and how probable each label is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import DecodingError
from regard.explaining.explain import blocks, row
from regard.explaining.explanation import Alternative, Explanation, Side, Step, Token
from regard.explaining.record import replay
from regard.explaining.sides import words_in

SHOWN = 10  # labels that a message names


@dataclass(frozen=True)
class Choice:
    """Of these labels, explain the `given` one, or the likeliest `best`; name so many `alternatives`."""

    labels: tuple[str, ...]
    given: str | None
    best: int
    alternatives: int


def explain_labels(model: nn.Module, name: str, source: Side, choice: Choice) -> list[Explanation]:
    """One explanation for each label asked for, likeliest first: its target is one token, the label, in one step.

    `start` is the token that the label is read from, the first one of the source. Nothing looks from the label at the
    source: attention is the encoder's alone, and the same for every label.
    """
    tokens = row(source.tokens)
    played = replay(model, tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens))
    log_p = played.output[0].double().log_softmax(-1)
    attention = blocks(played.attentions, source.tokens, ())
    return [
        Explanation(
            model=name,
            source=source,
            start=source.tokens[0],
            target=label_side(choice.labels[id], id),
            steps=(step_of(log_p, id, choice),),
            log_probability=float(log_p[id]),
            score=float(log_p[id]),
            attention=attention,
        )
        for id in chosen(log_p, choice)
    ]


def chosen(log_p: Float[Tensor, " classes"], choice: Choice) -> list[int]:
    if choice.given is None:
        return ranked(log_p)[: choice.best]
    if choice.given not in choice.labels:
        more = ", …" if len(choice.labels) > SHOWN else ""
        raise DecodingError(
            f"target {choice.given!r}: no label of this model; give one of {', '.join(choice.labels[:SHOWN])}{more}"
        )
    return [choice.labels.index(choice.given)]


def ranked(log_p: Float[Tensor, " classes"]) -> list[int]:
    """The ids of all labels, likeliest first."""
    order: list[int] = log_p.argsort(descending=True, stable=True).tolist()
    return order


def label_side(label: str, id: int) -> Side:
    words = words_in(label)
    token = Token(id=id, text=label, start=0, end=len(label), words=tuple(range(len(words))))
    return Side(text=label, words=words, tokens=(token,))


def step_of(log_p: Float[Tensor, " classes"], id: int, choice: Choice) -> Step:
    p: Sequence[float] = log_p.exp().tolist()
    likeliest = ranked(log_p)[: choice.alternatives]
    return Step(
        probability=p[id],
        rank=1 + int((log_p > log_p[id]).sum()),
        alternatives=tuple(Alternative(id=one, text=choice.labels[one], probability=p[one]) for one in likeliest),
    )
