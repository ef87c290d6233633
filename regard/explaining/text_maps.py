"""What each token of an output depends on, told from the model's attention: three estimates that need no masks.

A `Flow` has what came from the source, and what came from the target tokens that had been read, for each step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.bulk import BATCH_TOKENS
from regard.errors import DecodingError
from regard.explaining.explanation import Explanation, Kind, Method
from regard.explaining.leaving_out import Written
from regard.explaining.record import kinds
from regard.explaining.rollout import by_module, rollout
from regard.explaining.view import Which, mean, view
from regard.models.interface import SequenceToSequence


@dataclass(frozen=True)
class Flow:
    """For each target token, by the step that wrote it: of source tokens, and of what had been read (none: untold)."""

    source: Float[Tensor, "t s"]
    previous: Float[Tensor, "t t"] | None = None


# ---------------------------------------------------------------- which model can tell what
def available(explanation: Explanation) -> tuple[Method, ...]:
    """The methods that can tell something of this output. RISE can of every one."""
    there = {block.kind for block in explanation.attention}
    across: Kind = "cross" if explanation.source else "decoder"
    if across not in there:
        return ("rise",)
    whole = {"encoder", "decoder", "cross"} if explanation.source else {"decoder"}
    return ("rise", "attention", "rollout", "gradient") if whole <= there else ("rise", "attention", "gradient")


def refuse_missing(explanation: Explanation, methods: Sequence[Method]) -> None:
    """DecodingError where a method has nothing to go by; it says what has."""
    there = available(explanation)
    for method in methods:
        if method not in there and method == "rollout" and len(there) > 1:
            raise DecodingError(
                f"map rollout: {explanation.model} has layers that pass tokens on by other ways than attention; "
                f"ask for one of {', '.join(there)}"
            )
        if method not in there:
            raise DecodingError(
                f"map {method}: {explanation.model} is a model without attention; ask for rise, which needs none"
            )


# ---------------------------------------------------------------- attention
def attention_map(explanation: Explanation) -> Flow:
    """The weights that `view` shows: of the layer that aligns best; of a language model the last, on what was read."""
    if explanation.source:
        return Flow(view(explanation, Which("cross")).weights)
    seen = view(explanation, Which("decoder")).weights
    return Flow(seen[:, :0], seen)


# ---------------------------------------------------------------- rollout
def rollout_map(explanation: Explanation) -> Flow:
    """`flow` of the weights of a Transformer; of a language model, `rollout`, which is the same without a source."""
    decoder = layers_of(explanation, "decoder")
    if not explanation.source:
        found = rollout(decoder[:, None])
        return Flow(found[:, :0], found)
    return flow(layers_of(explanation, "encoder"), decoder, layers_of(explanation, "cross"))


def flow(encoder: Float[Tensor, "a s s"], decoder: Float[Tensor, "b t t"], cross: Float[Tensor, "b t s"]) -> Flow:
    """S ← Ã S and T ← Ã T, then S ← ½ (S + C E) and T ← ½ T for each layer of the decoder, from S = 0 and T = I on.

    Ã is one layer of `rollout` by A, C the cross-attention, E the rollout of the encoder; A and C are means over heads.
    S[t, s] is the share of source token s in the step that writes t, T[t, r] that of what was read at r, if values were
    passed on unchanged and each residual connection carried half: a row of both sums to 1. Abnar and Zuidema 2020,
    taken through the decoder.
    """
    read = rollout(encoder[:, None])
    source, previous = torch.zeros_like(cross[0]), torch.eye(decoder.shape[-1]).to(decoder)
    for own, across in zip(decoder, cross, strict=True):
        mixed = rollout(own[None, None])
        source, previous = (mixed @ source + across @ read) / 2, mixed @ previous / 2
    return Flow(source, previous)


def layers_of(explanation: Explanation, kind: Kind) -> Float[Tensor, "layers q k"]:
    """The mean over heads of each layer."""
    found: dict[int, list[int]] = {}
    for place, block in enumerate(explanation.attention):
        if block.kind == kind:
            found.setdefault(block.layer, []).append(place)
    return torch.stack([mean([explanation.attention[i] for i in found[layer]]) for layer in sorted(found)])


# ---------------------------------------------------------------- gradient × attention
Credited = dict[Kind, list[Float[Tensor, "n q k"]]]  # Ā of every layer, lowest first


def gradient_map(model: SequenceToSequence, written: Written) -> Flow:
    """Row t of the relevance to y = log p(target_t), in which only attention that raises y counts.

    There is a backward pass for each target token: so many rows of one batch.
    """
    source, previous = [], []
    at_once = max(1, BATCH_TOKENS // (len(written.source) + len(written.target)))
    for steps in torch.split(torch.arange(len(written.target)), at_once):
        found = by_module(model, partial(summed, model, written, steps))
        from_source, from_target = relevances(credited(found), len(written.source), len(written.target))
        rows = torch.arange(len(steps))
        source.append(from_source[rows, steps])
        previous.append(from_target[rows, steps])
    return Flow(torch.cat(source).double(), torch.cat(previous).double())


def summed(model: SequenceToSequence, written: Written, steps: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    """Σ log p(target_t) over the steps, each in a row of its own: the gradient of a row is that of its one term."""
    source = torch.tensor([written.source] * len(steps), dtype=torch.long)
    target = torch.tensor(written.target)
    inputs = torch.tensor([[written.start, *written.target[:-1]]] * len(steps))
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    features, _ = model.decoder.features(inputs, model.decoder.begin(memory))
    log_p = model.decoder.output(features[torch.arange(len(steps)), steps]).log_softmax(-1)
    return log_p.gather(-1, target[steps, None]).sum()


def credited(found: Mapping[str, tuple[Tensor, Tensor]]) -> Credited:
    """Ā = E_h[(∂y/∂A ⊙ A)⁺] of each module, by what it looks at."""
    layers: Credited = {"encoder": [], "decoder": [], "cross": []}
    for name, kind in kinds(found).items():
        weights, gradients = found[name]
        layers[kind].append((gradients * weights).clamp(min=0).mean(1))
    return layers


def relevances(
    layers: Mapping[Kind, Sequence[Float[Tensor, "n _ _"]]], source: int, target: int
) -> tuple[Float[Tensor, "n t s"], Float[Tensor, "n t t"]]:
    """R ← R + Ā R for each layer, over source and target as one sequence; a row of the source reads no target.

    R_ss = I before the encoder, R_tt = I and R_ts = 0 before the decoder, whose self-attention gives R_tt + Ā R_tt and
    R_ts + Ā R_ts, and whose cross-attention R_ts + Ā R_ss. Layers without self-attention leave R as it is.
    Chefer et al. 2021, eq. 5 and 6, taken through the decoder.
    """
    some = next(layer for each in layers.values() for layer in each)
    own = torch.eye(source).to(some).expand(len(some), source, source)
    for layer in layers["encoder"]:
        own = own + layer @ own
    read = torch.eye(target).to(some).expand(len(some), target, target)
    across = some.new_zeros(len(some), target, source)
    for place in range(max(len(layers["decoder"]), len(layers["cross"]))):
        for layer in layers["decoder"][place : place + 1]:
            read, across = read + layer @ read, across + layer @ across
        for layer in layers["cross"][place : place + 1]:
            across = across + layer @ own
    return across, read
