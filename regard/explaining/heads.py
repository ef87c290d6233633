"""Heads one by one: without one of them, how much a loss depends on each, and what each is in the habit of doing."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.explaining.explanation import Kind, Role
from regard.explaining.record import Attention, kind_of, layer_of
from regard.explaining.roles import HALF, LIFT, entropy, even, habits, share
from regard.layers.attention import CrossAttention, SelfAttention

Headed = SelfAttention | CrossAttention  # the attention modules that have heads
KERNEL = ".kernel"  # behind the path of such a module: what computes its heads


@dataclass(frozen=True)
class Head:
    """Layer and head count from 1. "cross 2.3" is the third head of the second layer that looks at the source."""

    kind: Kind
    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.kind} {self.layer}.{self.head}"


def headed(model: nn.Module) -> dict[str, Headed]:
    """The attention modules that have heads, by path, in the order of the model; none in a recurrent model."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Headed)}


def heads_at(path: str, module: Headed) -> list[Head]:
    """The heads of the attention module at this path of a model."""
    kind, layer = kind_of([*path.split("."), "kernel"]), layer_of(path) + 1
    return [Head(kind, layer, head) for head in range(1, module.heads + 1)]


def every_head(model: nn.Module) -> list[Head]:
    """In the order of the model."""
    return [head for path, module in headed(model).items() for head in heads_at(path, module)]


# ---------------------------------------------------------------- without some
@contextmanager
def silenced(model: nn.Module, heads: Collection[Head]) -> Iterator[None]:
    """Within the block, what these heads find is 0: their columns of the output projection are.

    The same as a gate of 0 before that projection, for whatever runs the model or copies its weights.
    """
    saved: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        for path, module in headed(model).items():
            parts = module.output.weight.chunk(module.heads, 1)
            for head, columns in zip(heads_at(path, module), parts, strict=True):
                if head in heads:
                    saved.append((columns, columns.clone()))
                    columns.zero_()
    try:
        yield
    finally:
        with torch.no_grad():
            for columns, own in saved:
                columns.copy_(own)


# ---------------------------------------------------------------- gates
@contextmanager
def gated(model: nn.Module, gates: Mapping[str, Float[Tensor, "n _"]]) -> Iterator[None]:
    """Within the block, what head h finds for row n is multiplied by gates[path][n, h], before the output projection.

    Paths are those of `headed`; a gate of one row is for all rows.
    """
    with ExitStack() as stack:
        for path, gate in gates.items():
            stack.enter_context(model.get_submodule(path + KERNEL).register_forward_hook(times(gate)))
        yield


def times(gate: Float[Tensor, "n h"]) -> Callable[[nn.Module, object, Tensor], Tensor]:
    """A forward hook that multiplies what each head found."""

    def hook(_module: nn.Module, _inputs: object, found: Float[Tensor, "n h q e"]) -> Float[Tensor, "n h q e"]:
        return found * gate[:, :, None, None]

    return hook


def slopes(model: nn.Module, rows: int, run: Callable[[], Float[Tensor, ""]]) -> dict[Head, Float[Tensor, " rows"]]:
    """∂L/∂ξ at ξ = 1 for every head and row of a batch, where L is what `run` gives and ξ gates what the head finds.

    One pass forwards and one backwards. If L is a sum over rows, the slope of a row is that of its own term.
    """
    modules = headed(model)
    one = {path: module.output.weight.new_ones(rows, module.heads) for path, module in modules.items()}
    gates = {path: gate.requires_grad_() for path, gate in one.items()}
    with torch.enable_grad(), gated(model, gates):
        found = torch.autograd.grad(run(), list(gates.values()))
    return {
        head: slope
        for (path, module), each in zip(modules.items(), found, strict=True)
        for head, slope in zip(heads_at(path, module), each.unbind(1), strict=True)
    }


# ---------------------------------------------------------------- habits
@dataclass(frozen=True)
class Habit:
    """What a head does on average over texts."""

    entropy: float
    roles: tuple[Role, ...]


class Habits:
    """`entropy` and `roles` over many texts: the means of what is measured in each, then the same two conditions."""

    def __init__(self) -> None:
        self.sums: dict[tuple[Kind, int], Float[Tensor, "measures h"]] = {}
        self.texts = 0

    def add(self, seen: Collection[tuple[Attention, Bool[Tensor, " k"]]]) -> None:
        """What every module looked at in one text, beside the keys that are separators."""
        self.texts += 1
        for one, separators in seen:
            found, place = measures(one, separators), (one.kind, one.layer + 1)
            self.sums[place] = self.sums[place] + found if place in self.sums else found

    def of_each(self) -> dict[Head, Habit]:
        return {
            Head(kind, layer, head): habit
            for (kind, layer), total in self.sums.items()
            for head, habit in enumerate(told(kind, total / self.texts), start=1)
        }


def measures(one: Attention, separators: Bool[Tensor, " k"]) -> Float[Tensor, "measures h"]:
    """Of each head its entropy, then, for each role in turn, the weight on its places, and that of an even head."""
    weights, usual = one.weights.double(), even(one.weights.double())
    marks = habits(one.kind, weights.shape[1], separators).values()
    return torch.stack([entropy(weights), *(share(x, marked) for marked in marks for x in (weights, usual))])


def told(kind: Kind, means: Float[Tensor, "measures h"]) -> list[Habit]:
    names = list(habits(kind, 1, torch.zeros(1, dtype=torch.bool)))
    found = []
    for spread, *pairs in means.mT.tolist():
        own, usual = pairs[0::2], pairs[1::2]
        sure = (role for role, x, y in zip(names, own, usual, strict=True) if x >= max(HALF, LIFT * y))
        found.append(Habit(spread, tuple(sure)))
    return found
