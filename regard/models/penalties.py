"""What a model adds to its loss: modules say it themselves, and whoever forms the loss collects it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn


@contextmanager
def penalties(model: nn.Module) -> Iterator[list[Tensor]]:
    """Within the block, one scalar for each call of each module that has a `penalty`; for most models there are none.

    `penalty` is called with the result of the module's `forward`. A scalar is meant for a mean loss: one that is a sum
    over units adds it times the units.
    """
    found: list[Tensor] = []

    def note(module: Any, _inputs: Any, output: Any) -> None:
        found.append(module.penalty(output))

    penalised = [module for module in model.modules() if callable(getattr(module, "penalty", None))]
    handles = [module.register_forward_hook(note) for module in penalised]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
