"""Means of weights: along the run (exponential) and over checkpoints (plain)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.training.tensors import check_match, read_tensors


class MovingAverage:
    """w̄ ← β w̄ + (1−β) w after every step, with β = min(decay, (1+s)/(10+s)).

    The second term lets a short run forget its random start. Buffers are not averaged.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.weights = [p.detach() for _, p in named]
        self.means = {name: p.detach().clone() for name, p in named}
        self.mean_of = {p: self.means[name] for name, p in named}

    @torch.no_grad()
    def update(self, step: int, parameters: Sequence[nn.Parameter]) -> None:
        """The means of these parameters move on."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_([self.mean_of[p] for p in parameters], list(parameters), 1 - decay)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Within, the model computes with the means; afterwards with its own weights again, to the bit."""
        own = [w.clone() for w in self.weights]
        self.impose()
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, own)

    @torch.no_grad()
    def impose(self) -> None:
        """The model takes the means for good."""
        torch._foreach_copy_(self.weights, list(self.means.values()))


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of several safetensors files of one model, name by name; summed in float64.

    What is not a floating-point number (a counter) is taken from the last file.
    """
    assert paths, "an average needs at least one file"
    last = read_tensors(paths[-1])
    sums = {name: torch.zeros_like(x, dtype=torch.float64) for name, x in last.items() if x.is_floating_point()}
    for path in paths:
        found = read_tensors(path)
        check_match(last, found, path)
        for name, total in sums.items():
            total += found[name]
    return {name: (sums[name] / len(paths)).to(x.dtype) if name in sums else x for name, x in last.items()}
