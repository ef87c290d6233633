"""Counts, accuracy and macro F1 agree with a plain loop, and with scikit-learn where it is installed."""

import numpy as np
import pytest

from regard.errors import DataError
from regard.evaluation.accuracy import accuracy, confused, confusion, macro_f1


def drawn(seed: int, classes: int, n: int = 60) -> tuple[list[int], list[int]]:
    rng = np.random.default_rng(seed)
    actual = rng.integers(classes, size=n)
    predicted = np.where(rng.random(n) < 0.6, actual, rng.integers(classes, size=n))
    return predicted.tolist(), actual.tolist()


def plain_f1(predicted: list[int], actual: list[int]) -> float:
    found = []
    for name in sorted({*predicted, *actual}):
        both = sum(p == a == name for p, a in zip(predicted, actual, strict=True))
        precision = both / predicted.count(name) if name in predicted else 0.0
        recall = both / actual.count(name) if name in actual else 0.0
        found.append(2 * precision * recall / (precision + recall) if both else 0.0)
    return 100 * sum(found) / len(found)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_all_scores_agree_with_a_plain_loop(classes, seed):
    predicted, actual = drawn(seed, classes)
    counts = confusion(predicted, actual, classes + 1)  # the last class never occurs
    for a in range(classes + 1):
        for p in range(classes + 1):
            assert counts[a, p] == sum((x, y) == (p, a) for x, y in zip(predicted, actual, strict=True))
    equal = sum(p == a for p, a in zip(predicted, actual, strict=True))
    assert accuracy(counts) == pytest.approx(100 * equal / len(actual), abs=1e-12)
    assert macro_f1(counts) == pytest.approx(plain_f1(predicted, actual), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_all_scores_agree_with_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    predicted, actual = drawn(seed, 5, n=12)
    counts = confusion(predicted, actual, 5)
    assert counts.tolist() == metrics.confusion_matrix(actual, predicted, labels=range(5)).tolist()
    assert accuracy(counts) == pytest.approx(100 * metrics.accuracy_score(actual, predicted))
    assert macro_f1(counts) == pytest.approx(
        100 * metrics.f1_score(actual, predicted, average="macro", zero_division=0)
    )


def test_a_case_worked_by_hand():
    counts = confusion([0, 0, 1, 1, 1], [0, 1, 1, 1, 2], 3)
    assert counts.tolist() == [[1, 0, 0], [1, 2, 0], [0, 1, 0]]
    assert accuracy(counts) == 60.0
    assert macro_f1(counts) == pytest.approx(100 * (2 / 3 + 2 / 3 + 0) / 3)  # 2·1/(2+1), 2·2/(3+3), 0


def test_always_right_is_a_hundred_and_always_wrong_is_nothing():
    right, wrong = confusion([0, 1, 2], [0, 1, 2], 3), confusion([1, 2, 0], [0, 1, 2], 3)
    assert (accuracy(right), macro_f1(right)) == (100.0, 100.0)
    assert (accuracy(wrong), macro_f1(wrong)) == (0.0, 0.0)


def test_renaming_the_classes_changes_no_score():
    predicted, actual = drawn(9, 4)
    other = [2, 0, 3, 1]
    ours, theirs = (
        confusion(predicted, actual, 4),
        confusion([other[p] for p in predicted], [other[a] for a in actual], 4),
    )
    assert accuracy(ours) == accuracy(theirs)
    assert macro_f1(ours) == pytest.approx(macro_f1(theirs), abs=1e-12)


@pytest.mark.parametrize(
    ("predicted", "actual", "message"),
    [([0, 1], [0], "2 predictions for 1 labels"), ([], [], "0 predictions and 0 labels")],
)
def test_scores_of_nothing_or_of_unequal_sides_are_refused(predicted, actual, message):
    with pytest.raises(DataError, match=message):
        confusion(predicted, actual, 2)


def test_mistakes_come_by_how_often_they_were_made():
    counts = confusion([1, 1, 2, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 2], 3)
    assert confused(counts)[0] == (0, 1, 2)
    assert sorted(confused(counts)) == [(0, 1, 2), (0, 2, 1), (1, 0, 1), (2, 1, 1)]
    assert confused(np.diag([3, 0, 2])) == []
