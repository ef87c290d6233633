"""The gradients of a batch by several threads, each with a share of its rows, and what follows them, in parts.

A thread that shares every product with another waits for it thousands of times a step, and hardly gains where there is
no product. With a share of the rows each, they meet once: on two cores a step was 7 to 12 % faster (docs/speed.md).
Sums of gradients and the optimiser are theirs too, a part of the parameters each: were they left to the threads of
OpenMP, those would go on to spin beside the next batch.
"""

import copy
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from regard.layers.dropout import Drawing
from regard.layers.loss import Loss
from regard.native.update import gather
from regard.tasks.interface import Dividing, Task
from regard.training.options import TrainingOptions

Item, Result = TypeVar("Item"), TypeVar("Result")
MOST = 4  # shares that pay without being asked for: Python runs one thread at a time, and each needs it


def shares(options: TrainingOptions) -> int:
    """How many a batch is cut into: as asked, else one for each thread, up to `MOST`."""
    return options.shares or min(options.threads or torch.get_num_threads(), MOST)


def deal(parameters: Sequence[nn.Parameter], hands: int) -> list[list[int]]:
    """The places 0, 1 … of all parameters in as many lists of about the same number of values, in rising order."""
    dealt: list[list[int]] = [[] for _ in range(hands)]
    values = [0] * hands
    for place in sorted(range(len(parameters)), key=lambda place: -parameters[place].numel()):
        lightest = values.index(min(values))
        dealt[lightest].append(place)
        values[lightest] += parameters[place].numel()
    return [sorted(places) for places in dealt]


def parts_of(plan: Any, task: Task[Any, Any], count: int) -> list[Any]:
    """At most so many plans, of about as much work."""
    if isinstance(task, Dividing):
        return task.divide(plan, count)
    return [plan[place::count] for place in range(min(count, len(plan)))]


def number(seed: str) -> int:
    """32 bits of a hash: neighbouring seeds of torch's generator differ in few bits, and it reads only 32 of them."""
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=4).digest())


def twin(model: nn.Module, generator: torch.Generator) -> nn.Module:
    """A copy whose parameters are the same memory, with gradients of its own and random numbers from the generator."""
    shared = {id(p): nn.Parameter(p.detach(), p.requires_grad) for p in model.parameters()}
    copied = copy.deepcopy(model, shared)
    for module in copied.modules():
        if isinstance(module, Drawing):
            module.generator = generator
    return copied


def fill_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Every gradient dense: one that lookups alone gave may not be, see `TiedOutput`."""
    for p in parameters:
        if p.grad is not None and p.grad.is_sparse:
            p.grad = p.grad.to_dense()


def add_gradients(to: Sequence[nn.Parameter], of: Sequence[nn.Parameter | None]) -> float:
    """Σ of both on the first, whose squares are summed up; none on the second.

    A parameter that one of them did not meet has no gradient there. None: there is no second.
    """
    for p, q in zip(to, of, strict=True):
        if p.grad is None and q is not None:
            p.grad, q.grad = q.grad, None
    both = [(p.grad, None if q is None else q.grad) for p, q in zip(to, of, strict=True) if p.grad is not None]
    first, second = [mine for mine, _ in both], [theirs for _, theirs in both]
    squares = gather(first, second)
    if squares is None:
        squares = plain_gather(first, second)
    for q in of:
        if q is not None:
            q.grad = None
    return squares


def plain_gather(to: Sequence[Tensor], of: Sequence[Tensor | None]) -> float:
    """What `native.update.gather` computes, where C cannot."""
    for x, y in zip(to, of, strict=True):
        if y is not None:
            x += y
    return float(sum(x.double().square().sum() for x in to))


def join(threads: int) -> None:
    """What a thread does before its first share."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


class Crew:
    """Threads that go through shares of a batch, the first with the model itself, the others with twins of it.

    The same shares in the same order give the same sums: a run can be repeated to the bit with as many threads.
    Numbers below 1e-38 are zero within: gradients that vanish end there, and a processor is slow with them (an RNN with
    parameterised attention took 1.5 times the steps a minute without them).
    """

    def __init__(self, model: nn.Module, task: Task[Any, Any], size: int) -> None:
        self.generators = [torch.default_generator, *(torch.Generator() for _ in range(size - 1))]
        self.task, self.models = task, [model, *(twin(model, generator) for generator in self.generators[1:])]
        self.parameters = [list(member.parameters()) for member in self.models]
        self.dealt = deal(self.parameters[0], size)
        self.before = torch.get_num_threads()
        self.threads = max(self.before // size, 1)  # of each
        count = self.threads
        self.pool = ThreadPoolExecutor(size - 1, initializer=lambda: join(count)) if size > 1 else None

    def __enter__(self) -> "Crew":
        torch.set_flush_denormal(True)
        if self.pool:
            torch.set_num_threads(self.threads)  # this thread is one of the crew
        return self

    def __exit__(self, *_: object) -> None:
        torch.set_flush_denormal(False)
        if self.pool:
            self.pool.shutdown()
            torch.set_num_threads(self.before)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Within, this thread computes with as many threads as before."""
        now = torch.get_num_threads()
        torch.set_num_threads(self.before)
        try:
            yield
        finally:
            torch.set_num_threads(now)

    @property
    def size(self) -> int:
        return len(self.models)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """work(item) for all items at the same time, as many as there are threads: this one takes the first."""
        if not self.pool:
            return [work(item) for item in items]
        first, *others = items
        going = [self.pool.submit(work, item) for item in others]
        try:
            own = work(first)
        finally:
            wait(going)  # all of them, even if one fails: nobody computes on after that
        return [own, *(done.result() for done in going)]

    def seed(self, seed: str) -> None:
        """All random numbers from here on are a function of the seed."""
        # Not torch.manual_seed: without CUDA, each call of it queues a stack trace for ever.
        for place, generator in enumerate(self.generators):
            generator.manual_seed(number(f"{seed}/{place}" if place else seed))

    def backward(self, plan: Any, epoch: int) -> Loss:
        """The loss of a batch, whose gradients are added to those that each member has; `gather` brings them home."""
        for model in self.models:
            if not model.training:  # it takes a while to tell all of its modules
                model.train()
        if not self.pool:
            return self._share(0, plan, epoch)
        parts = parts_of(plan, self.task, self.size)
        losses: list[Loss] = self.map(lambda member: self._share(member, parts[member], epoch), range(len(parts)))
        return sum(losses[1:], losses[0])

    def gather(self) -> float:
        """The gradients of all members are now on the model itself; their norm there."""
        return math.sqrt(sum(self.map(self._gather, self.dealt)))

    def _share(self, member: int, part: Any, epoch: int) -> Loss:
        loss = self.task.loss(self.models[member], self.task.collate(part, epoch))
        loss.total.backward()  # type: ignore[no-untyped-call]
        fill_gradients(self.parameters[member])
        return Loss(loss.total.detach(), loss.units)

    def _gather(self, places: Sequence[int]) -> float:
        """Σ of the squares of these parameters' gradients, once the first member has those of all."""
        first, *others = ([parameters[place] for place in places] for parameters in self.parameters)
        if not others:
            return add_gradients(first, [None] * len(first))
        return [add_gradients(first, theirs) for theirs in others][-1]
