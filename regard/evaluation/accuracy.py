"""How often a classifier is right, overall and class by class: all of it follows from a table of counts."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from regard.errors import DataError

Counts = Int64[np.ndarray, "classes classes"]


def confusion(predicted: Sequence[int], actual: Sequence[int], classes: int) -> Counts:
    """counts[a, p]: how many examples of class a were taken for class p."""
    if len(predicted) != len(actual):
        raise DataError(f"evaluation: {len(predicted)} predictions for {len(actual)} labels; give one for each")
    if not len(actual):
        raise DataError("evaluation: 0 predictions and 0 labels; give at least one example")
    cells = np.asarray(actual, dtype=np.int64) * classes + np.asarray(predicted, dtype=np.int64)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def accuracy(counts: Counts) -> float:
    """100 · examples that were taken for what they are / examples."""
    return 100.0 * int(np.trace(counts)) / int(counts.sum())


def macro_f1(counts: Counts) -> float:
    """100 · mean over classes of 2·right / (actual + predicted): a rare class counts as much as a frequent one.

    A class that neither occurs nor is predicted is left out, as scikit-learn does.
    """
    right, either = np.diag(counts), counts.sum(0) + counts.sum(1)
    there = either > 0
    return 100.0 * float((2 * right[there] / either[there]).mean())


def confused(counts: Counts) -> list[tuple[int, int, int]]:
    """(actual, predicted, how often) of every mistake that was made, the most frequent first."""
    mistakes = counts - np.diag(np.diag(counts))
    found = [(int(a), int(p), int(mistakes[a, p])) for a, p in zip(*np.nonzero(mistakes), strict=True)]
    return sorted(found, key=lambda mistake: -mistake[2])
