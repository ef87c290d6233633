"""What an output depends on, as part of its explanation: maps by every method, each with its faithfulness if asked."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.errors import DecodingError
from regard.explaining.explanation import Errors, Explanation, Faithful, Method, Saliency, Values
from regard.explaining.faithfulness import of_own_orders
from regard.explaining.leaving_out import Written, remembered, without_previous, without_source, written_in
from regard.explaining.rise import Saliency as Estimate
from regard.explaining.rise import Score, Stop, binary_masks, rise
from regard.explaining.text_maps import Flow, attention_map, available, gradient_map, refuse_missing, rollout_map
from regard.models.interface import SequenceToSequence

KEPT = 0.5  # probability that a token is kept: the paper's
MASKS, TOKENS = 256, 16384  # at most, between two looks at whether they are enough
SEED = 1  # of masks and of random maps: the same question has the same answer
RANDOM = 4  # random maps, whose mean faithfulness is that of chance
MOST_ASKED = 25_000  # rows for the faithfulness of one map: minutes


def last(_name: str, estimates: Iterable[Estimate], _stop: Stop) -> Estimate:
    """The last of the estimates, and nothing said meanwhile."""
    *_, found = estimates
    return found


# Takes estimates of the map of that name as they come, until the rule stops them, and gives the last one back.
Watch = Callable[[str, Iterable[Estimate], Stop], Estimate]


@dataclass(frozen=True)
class Wanted:
    """Which maps, by how many masks at most, and whether they are judged. Judged but not named: all that there are."""

    methods: tuple[Method, ...] = ()
    masks: int | None = None
    faithful: bool = False
    watch: Watch = last

    @property
    def stop(self) -> Stop:
        return Stop() if self.masks is None else Stop(most=self.masks)


def depend(model: SequenceToSequence, explanation: Explanation, wanted: Wanted) -> Explanation:
    """The explanation of an output with the maps that are wanted; the model is in evaluation mode."""
    methods = wanted.methods or (available(explanation) if wanted.faithful else ())
    if not methods:
        return explanation
    refuse_missing(explanation, methods)
    asking = Asking(model, written_in(explanation))
    if wanted.faithful:
        asking.refuse_long()
    found = [mapped(method, asking, explanation, wanted) for method in dict.fromkeys(methods)]
    if wanted.faithful:
        chance = asking.chance()
        found = [one.model_copy(update={"faithful": asking.faithful(one), "chance": chance}) for one in found]
    return explanation.model_copy(update={"saliency": tuple(found)})


def mapped(method: Method, asking: "Asking", explanation: Explanation, wanted: Wanted) -> Saliency:
    if method == "rise":
        return asking.rise(wanted.stop, wanted.watch)
    if method == "gradient":
        return told(method, gradient_map(asking.model, asking.written))
    return told(method, attention_map(explanation) if method == "attention" else rollout_map(explanation))


def told(method: Method, found: Flow) -> Saliency:
    previous = None if found.previous is None else rows(found.previous)
    return Saliency(method=method, values=rows(found.source), previous=previous)


class Asking:
    """A model and what it wrote, asked again and again with tokens left out; no mask is asked twice."""

    def __init__(self, model: SequenceToSequence, written: Written) -> None:
        self.model, self.written = model, written
        self.source = remembered(without_source(model, written)) if written.source else None
        self.previous = remembered(without_previous(model, written))

    @property
    def places(self) -> int:
        """What can be left out: of the source, or where there is none, of what was read."""
        return self.written.source_places if self.source is not None else self.written.previous_places

    # -------------------------------------------------------- RISE
    def rise(self, stop: Stop, watch: Watch) -> Saliency:
        """The end token and the start token cannot be left out: nothing is known of them. What comes later is at 0."""
        self.refuse_nothing()
        written = self.written
        own: Estimate | None = None
        back: Estimate | None = None
        if self.source is not None:
            own = watch("rise, source", self.estimates(self.source, written.source_places, stop), stop)
        if written.previous_places:
            back = known(watch("rise, output", self.estimates(self.previous, written.previous_places, stop), stop))
        return Saliency(
            method="rise",
            values=((),) * len(written.target) if own is None else rows(with_end(own.values.mT, 0.0)),
            errors=None if own is None else finite(with_end(own.errors.mT, math.inf)),
            previous=None if back is None else rows(with_start(back.values.mT, 0.0)),
            previous_errors=None if back is None else finite(with_start(back.errors.mT, math.inf)),
            masks=max(one.masks for one in (own, back) if one is not None),
        )

    def estimates(self, ask: Score, places: int, stop: Stop) -> Iterable[Estimate]:
        tokens = len(self.written.source) + len(self.written.target)
        batch = min(MASKS, max(1, TOKENS // tokens))
        return rise(ask, binary_masks(places, KEPT, batch, torch.Generator().manual_seed(SEED)), stop)

    def refuse_nothing(self) -> None:
        if not self.places:
            raise DecodingError("text: has no token that could be left out, so nothing can be told; give a longer one")

    # -------------------------------------------------------- faithfulness
    def faithful(self, found: Saliency) -> Faithful:
        """By the map over the source; by that over what was read, where there is no source."""
        if self.source is not None:
            return self.judged(torch.tensor(found.values, dtype=torch.float64)[:, :-1])
        return self.judged(torch.tensor(found.previous, dtype=torch.float64)[:, 1:])

    def chance(self) -> Faithful:
        """The mean of random maps, which know what comes later, as the others do."""
        self.refuse_nothing()
        outputs, generator = len(self.written.target), torch.Generator().manual_seed(SEED)
        visible = torch.ones(outputs, self.places).double() if self.source is not None else seen(outputs).double()
        drawn = [torch.rand(visible.shape, generator=generator) * visible for _ in range(RANDOM)]
        judged = [self.judged(one) for one in drawn]
        return Faithful(
            deletion=fmean(one.deletion for one in judged), insertion=fmean(one.insertion for one in judged)
        )

    def refuse_long(self) -> None:
        asked = 2 * len(self.written.target) * (self.places + 1)
        if asked > MOST_ASKED:
            raise DecodingError(
                f"text: to judge one map the model would be asked {asked:,} times, expected at most {MOST_ASKED:,}; "
                "give a shorter text, or do without"
            )

    def judged(self, values: Float[Tensor, "outputs places"]) -> Faithful:
        found = of_own_orders(self.source or self.previous, values.argsort(dim=1, descending=True, stable=True))
        return Faithful(deletion=found.deletion, insertion=found.insertion)


# ---------------------------------------------------------------- matrices
def seen(outputs: int) -> Bool[Tensor, "outputs places"]:
    """Whether the token at a place of the target stands before each output."""
    return torch.ones(outputs, outputs - 1, dtype=torch.bool).tril(-1)


def known(found: Estimate) -> Estimate:
    """What comes later than an output adds nothing to it, and that is certain: only chance said otherwise."""
    later = ~seen(found.values.shape[1]).mT
    return replace(found, values=found.values.masked_fill(later, 0.0), errors=found.errors.masked_fill(later, 0.0))


def with_end(values: Float[Tensor, "t places"], end: float) -> Float[Tensor, "t s"]:
    """A column more, for the end token."""
    return torch.cat([values, torch.full_like(values[:, :1], end)], 1)


def with_start(values: Float[Tensor, "t places"], start: float) -> Float[Tensor, "t t"]:
    """A column more, for the start token."""
    return torch.cat([torch.full_like(values[:, :1], start), values], 1)


def rows(values: Float[Tensor, "t k"]) -> Values:
    return tuple(tuple(row) for row in values.tolist())


def finite(errors: Float[Tensor, "t k"]) -> Errors:
    """None, which JSON has, for an infinite error, which it has not."""
    return tuple(tuple(error if math.isfinite(error) else None for error in row) for row in errors.tolist())
