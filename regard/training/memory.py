"""Whether the largest batch fits, asked before the first step instead of after the first hour."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import TrainingError
from regard.tasks.interface import Task
from regard.training.crew import Crew

SIGNS = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory", "alloc_cpu")
STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """The most memory that this process ever held, in bytes."""
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def memory_refused() -> Iterator[None]:
    """Turns an allocation that failed into one line that says which option to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(sign in str(error).lower() for sign in SIGNS):
            raise
        raise TrainingError(
            f"a batch does not fit into memory (peak {peak_memory() / 2**20:.0f} MB); lower data.batch_tokens and "
            "raise training.accumulate by as much, or make the model smaller"
        ) from error


def rehearse(model: nn.Module, task: Task[Any, Any], crew: Crew) -> int:
    """The largest batch forward and backward, no step, gradients cleared; returns the peak memory in bytes."""
    with memory_refused():
        crew.backward(task.largest(), 0)
        crew.gather()
    model.zero_grad(set_to_none=True)
    return peak_memory()
