"""Word alignment from cross-attention: the source word that each target word looks at most."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.evaluation.alignment import Links
from regard.explaining.record import kinds, watch
from regard.explaining.view import listed
from regard.models.interface import SequenceToSequence
from regard.text.special import BOS, EOS

Step = Literal["reading", "writing"]


@dataclass(frozen=True)
class Look:
    """Which weights say what a target token looks at: of one head, the mean of a layer (no head), of all (no layer).

    Layers of the decoder and heads count from 1. At the step `writing` the token is what the decoder is about to say;
    at `reading`, one step later, it is what the decoder has just been given. Chen et al. 2020 call that Shift-Att, and
    found it better; for models of a few layers the opposite was measured (docs/alignment.md), so `writing` is usual.
    """

    layer: int | None = None
    head: int | None = None
    step: Step = "writing"

    def __str__(self) -> str:
        layer = "mean of all layers and heads" if self.layer is None else f"layer {self.layer}"
        head = "" if self.layer is None else ", mean of its heads" if self.head is None else f", head {self.head}"
        return f"{layer}{head}, {self.step}"


def every_look(heads: Sequence[int]) -> list[Look]:
    """Each head, the mean of each layer, the mean of all; at both steps. `heads` counts those of each layer."""
    found: list[Look] = []
    for step in get_args(Step):
        layers = range(1, len(heads) + 1)
        found += [Look(layer, head, step) for layer in layers for head in range(1, heads[layer - 1] + 1)]
        found += [Look(layer, None, step) for layer in layers]
        found.append(Look(None, None, step))
    return found


# ---------------------------------------------------------------- tokens
def cross_attentions(model: SequenceToSequence) -> list[nn.Module]:
    """The attention modules that look at the source, lowest first; none in a model without attention."""
    names = [name for name, module in model.named_modules() if callable(getattr(module, "weights", None))]
    return [model.get_submodule(name) for name, kind in kinds(names).items() if kind == "cross"]


@torch.no_grad()
def cross_weights(
    model: SequenceToSequence, source: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"], inputs: Int[Tensor, "n t"]
) -> list[Float[Tensor, "n _ t s"]]:
    """What every head gives to each source token while the decoder reads `inputs`, teacher-forced; padding gets 0.

    One tensor a layer, for layers that were pruned have fewer heads. The caller puts the model in eval mode.
    """
    with ExitStack() as stack:
        calls = [stack.enter_context(watch(module)) for module in cross_attentions(model)]
        model.decoder.features(inputs, model.decoder.begin(model.encode(source, mask)))
    return [torch.cat(each[""], dim=2) for each in calls]


def attention_sizes(model: SequenceToSequence) -> tuple[int, ...]:
    """With how many heads each layer of the decoder looks at the source, lowest first; empty where none does."""
    if not cross_attentions(model):
        return ()
    source, inputs = torch.tensor([[EOS]]), torch.tensor([[BOS]])
    return tuple(seen.shape[1] for seen in cross_weights(model, source, source == EOS, inputs))


def described(heads: Sequence[int]) -> str:
    """ "3 layers of 4 heads"; where their numbers differ, "3 layers of 4, 4 and 2 heads"."""
    return f"{len(heads)} layers of {listed(heads if len(set(heads)) > 1 else heads[:1])} heads"


def looked(weights: Sequence[Float[Tensor, "_ t s"]], look: Look) -> Float[Tensor, "u s"]:
    """What each token of the target looks at: u = t − 1 of them, for the first input is the start token."""
    if look.layer is None:
        chosen = torch.cat(list(weights)).mean(0)
    elif look.head is None:
        chosen = weights[look.layer - 1].mean(0)
    else:
        chosen = weights[look.layer - 1][look.head - 1]
    return chosen[1:] if look.step == "reading" else chosen[:-1]


# ---------------------------------------------------------------- words
def belonging(pieces: Sequence[range], words: int) -> Float[Tensor, "words pieces"]:
    """1 where the piece has a part of the word; see `words_of`."""
    found = torch.zeros(words, len(pieces))
    for place, numbers in enumerate(pieces):
        found[numbers.start : numbers.stop, place] = 1
    return found


def word_weights(
    weights: Float[Tensor, "t s"], target: Float[Tensor, "w t"], source: Float[Tensor, "v s"]
) -> Float[Tensor, "w v"]:
    """A[i, j] = mean over the pieces t of target word i of Σ over the pieces s of source word j of weights[t, s].

    What was given to the end token belongs to no word, so a row may sum to less than 1. A word without pieces gets 0.
    """
    target, source = target.to(weights), source.to(weights)
    return target @ weights @ source.mT / target.sum(-1, keepdim=True).clamp(min=1)


def strongest(weights: Float[Tensor, "w v"], threshold: float) -> Links:
    """Each target word with the source word that it gives most to, if that is anything and at least the threshold."""
    if not weights.numel():
        return frozenset()
    most, words = weights.max(-1)
    rows = enumerate(zip(words.tolist(), most.tolist(), strict=True))
    return frozenset((source, target) for target, (source, weight) in rows if weight > 0 and weight >= threshold)


def side_by_side(weights: Float[Tensor, "w v"]) -> Links:
    """`strongest`, but of the target words of one source word only those around the one that gives it most.

    So what stands around a source word, a tag, goes around words that stand beside each other: a target word far away
    that looks at it too, as words that stand for nothing do, does not draw it out over half the sentence.
    """
    links = strongest(weights, 0.0)
    found: set[tuple[int, int]] = set()
    for source in {source for source, _ in links}:
        words = {target for one, target in links if one == source}
        best = max(words, key=lambda target: float(weights[target, source]))
        for step in (1, -1):
            target = best
            while target in words:
                found.add((source, target))
                target += step
    return frozenset(found)
