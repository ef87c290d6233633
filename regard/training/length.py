"""How long a run is, in one of three measures; progress runs from 0 to 1 in each."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from regard.training.options import TrainingOptions


@dataclass(frozen=True)
class Moment:
    """Where a run stands: optimiser steps taken, passes over the data (with fraction), seconds spent."""

    step: int
    passes: float
    seconds: float


@runtime_checkable
class Length(Protocol):
    @property
    def steps(self) -> int | None:
        """Steps of the whole run, as far as they can be known beforehand."""

    def progress(self, moment: Moment) -> float: ...


@dataclass(frozen=True)
class BySteps:
    steps: int

    def progress(self, moment: Moment) -> float:
        return moment.step / self.steps


@dataclass(frozen=True)
class ByEpochs:
    epochs: float
    steps: int

    def progress(self, moment: Moment) -> float:
        return moment.passes / self.epochs


@dataclass(frozen=True)
class ByBudget:
    """Wall time, of which `reserve` is left for the last validation: the run ends at the budget, not after it."""

    budget: float
    reserve: float = 0.0
    steps: None = None

    def progress(self, moment: Moment) -> float:
        # A validation that would eat more than half of a short budget does not get it.
        return moment.seconds / (self.budget - min(self.reserve, self.budget / 2))


def length(options: TrainingOptions, batches: int, reserve: float = 0.0) -> Length:
    """The measure that the options ask for; `batches` are those of one epoch."""
    if options.budget is not None:
        return ByBudget(options.budget, reserve)
    if options.steps is not None:
        return BySteps(options.steps)
    assert options.passes is not None
    return ByEpochs(options.passes, max(1, round(options.passes * math.ceil(batches / options.accumulate))))


def crossed(before: float, after: float, marks: int) -> bool:
    """Whether one of `marks` equal parts of the run was completed between two progresses."""
    return math.floor(min(after, 1.0) * marks) > math.floor(min(before, 1.0) * marks)
