"""What the training loop asks of a task: batches in a fixed order, a loss with its count, and scores."""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from torch import nn

from regard.evaluation.samples import Sample
from regard.layers.loss import Loss

Plan = TypeVar("Plan")  # which examples make up one batch
Batch = TypeVar("Batch")  # their tensors


@runtime_checkable
class Task(Protocol[Plan, Batch]):
    """`batches` and `collate` are pure functions of their arguments and of the seed the task was built with.

    A plan is a sequence of examples, and a part of it (`plan[i::n]`, unless the task is `Dividing`) is a plan too.
    `collate` and `loss` may run in several threads at once, `loss` with a model for each.

    A resumed run therefore sees exactly the batches that an uninterrupted one sees.
    """

    def batches(self, epoch: int) -> list[Plan]: ...
    def largest(self) -> Plan: ...
    def collate(self, plan: Plan, epoch: int) -> Batch: ...
    def loss(self, model: nn.Module, batch: Batch) -> Loss: ...
    def evaluate(self, model: nn.Module) -> dict[str, float]: ...


@runtime_checkable
class Dividing(Protocol[Plan]):
    """A task that knows how to part a plan so that each part is as much work and little of it is for padding."""

    def divide(self, plan: Plan, parts: int) -> list[Plan]:
        """At most so many plans, none of them empty, of all examples; a pure function of its arguments."""
        ...


@runtime_checkable
class Showing(Protocol):
    """A task whose model writes texts that people can judge."""

    def samples(self, model: nn.Module) -> Sequence[Sample]:
        """What the model makes of a few sentences, always the same ones; nothing is drawn at random."""
        ...
