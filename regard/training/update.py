"""One update of the weights by all threads of a crew, each with a part of the parameters."""

from torch import nn

from regard.training.adam import Adam
from regard.training.averaging import MovingAverage
from regard.training.crew import Crew
from regard.training.optimiser import build_optimisers, held
from regard.training.options import TrainingOptions


def clipped(norm: float, clip: float) -> float:
    """min(1, clip / norm), by which a gradient of that norm is multiplied; 1 where clip is 0."""
    return min(1.0, clip / (norm + 1e-6)) if clip else 1.0


class Update:
    """Gradients arrive as sums over units, so that division and clipping are one pass."""

    def __init__(self, model: nn.Module, crew: Crew, options: TrainingOptions) -> None:
        self.crew, self.clip = crew, options.clip
        self.optimisers = build_optimisers(model, options, crew.size)
        self.ema = MovingAverage(model, options.ema) if options.ema else None

    def step(self, step: int, rate: float, norm: float, units: int) -> None:
        """g ← g/u · min(1, clip / ‖g/u‖), and a step along it at this learning rate."""
        scale = clipped(norm, self.clip) / units

        def work(optimiser: Adam) -> None:
            optimiser.take(rate, scale)
            if self.ema:
                self.ema.update(step, held(optimiser))

        self.crew.map(work, self.optimisers)

    def clear(self) -> None:
        """No gradients from here on."""
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
