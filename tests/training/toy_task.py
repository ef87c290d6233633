"""A task small enough to train hundreds of times: 23 rows of 5 numbers in 3 classes, and a model with dropout.

As a program: `python toy_task.py FOLDER` trains it and says each step, for a test that kills it.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.layers.dropout import Dropout
from regard.layers.loss import Loss
from regard.training.events import Stepped
from regard.training.loop import train
from regard.training.options import TrainingOptions

ROWS, FEATURES, CLASSES = 23, 5, 3
LONG = TrainingOptions(steps=150, shares=2, accumulate=2, ema=0.9, saves=15, learning_rate=0.01, validations=7, seed=4)


@dataclass
class Toy:
    rows: int = 4  # of a batch
    scores: list[float] = field(default_factory=list)  # given out by evaluate, in order; empty: the true loss
    spoiled: set[int] = field(default_factory=set)  # calls of loss that return NaN
    calls: int = 0

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(ROWS, FEATURES, dtype=torch.float64, generator=generator)
        self.y = torch.randint(CLASSES, (ROWS,), generator=generator)

    def batches(self, epoch: int) -> list[list[int]]:
        order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(epoch)).tolist()
        return [order[i : i + self.rows] for i in range(0, ROWS, self.rows)]

    def largest(self) -> list[int]:
        return list(range(self.rows))

    def collate(self, plan: list[int], _epoch: int) -> tuple[Tensor, Tensor]:
        return self.x[plan], self.y[plan]

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
        self.calls += 1
        x, y = batch
        total = cross_entropy(model(x), y, reduction="sum")
        return Loss(total * torch.nan if self.calls - 1 in self.spoiled else total, len(y))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert not model.training
        assert not torch.is_grad_enabled()
        score = self.scores.pop(0) if self.scores else cross_entropy(model(self.x), self.y).item()
        return {"loss": score, "bleu": -score}


def toy_model(dropout: float = 0.3) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(FEATURES, 7), nn.LayerNorm(7), Dropout(dropout), nn.Linear(7, CLASSES)]
    return nn.Sequential(*layers).double()


def main(folder: str) -> None:
    for event in train(toy_model(), Toy(), LONG, folder=Path(folder), width=8):
        if isinstance(event, Stepped):
            sys.stdout.write(f"{event.step}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
