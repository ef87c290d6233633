"""An epoch is a pure function of seed and epoch; its batches keep to the budget and hardly pad."""

import os
from pathlib import Path

import numpy as np
import pytest

from regard.data.batches import Share, cells_of, cut, divide, draw, largest, padding, plan_epoch
from regard.data.readers import read_parallel


def like_multi30k(examples: int, seed: int = 0) -> np.ndarray:
    """Source 13 ± 4 words, target about as long, and an end token each."""
    rng = np.random.default_rng(seed)
    source = rng.normal(13, 4, examples).round().clip(4, 40)
    target = (source * rng.normal(1, 0.17, examples)).round().clip(3, 45)
    return np.stack([source, target], axis=1).astype(np.int64) + 1


def multi30k() -> Path:
    root = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (root / "multi30k" / "train.en.gz").exists():
        pytest.skip("needs multi30k/train.{en,de}.gz beneath the folder that REGARD_DATA names")
    return root / "multi30k"


def flat(plan: list[np.ndarray]) -> list[int]:
    return sorted(np.concatenate(plan).tolist())


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_every_example_is_in_exactly_one_batch_of_an_epoch(epoch):
    plan = plan_epoch(like_multi30k(2_999), [Share(2_999)], 512, seed=3, epoch=epoch)
    assert flat(plan) == list(range(2_999))


def test_the_plan_depends_on_seed_and_epoch_alone():
    lengths, shares = like_multi30k(700), [Share(500), Share(200, 1.5)]
    plan = plan_epoch(lengths, shares, 256, seed=1, epoch=2)
    assert same(plan, plan_epoch(lengths.copy(), list(shares), 256, seed=1, epoch=2))
    assert not same(plan, plan_epoch(lengths, shares, 256, seed=1, epoch=3))
    assert not same(plan, plan_epoch(lengths, shares, 256, seed=2, epoch=2))
    assert not same(plan, plan_epoch(lengths, shares, 256, seed=2, epoch=1))


@pytest.mark.parametrize("budget", [60, 333, 4096])
def test_rows_times_the_longest_side_never_exceed_the_budget(budget):
    lengths = like_multi30k(3_001)
    for rows in plan_epoch(lengths, [Share(3_001)], budget, seed=0, epoch=0):
        assert len(rows) * lengths[rows].max() <= budget


def test_an_example_above_the_budget_gets_a_batch_of_its_own():
    lengths = np.array([[3, 4], [50, 2], [4, 3], [2, 60], [3, 3]])
    plan = plan_epoch(lengths, [Share(5)], 20, seed=0, epoch=0)
    assert flat(plan) == [0, 1, 2, 3, 4]
    assert [1] in [rows.tolist() for rows in plan]
    assert [3] in [rows.tolist() for rows in plan]


def test_no_example_gives_no_batch():
    assert plan_epoch(np.zeros((0, 2), dtype=np.int64), [], 100, seed=0, epoch=0) == []
    assert plan_epoch(np.ones((3, 2), dtype=np.int64), [Share(3, 0.01)], 100, seed=0, epoch=0) == []


def test_shares_that_do_not_cover_the_examples_are_refused():
    with pytest.raises(ValueError, match="cover 4 examples, lengths 5"):
        plan_epoch(like_multi30k(5), [Share(4)], 100, seed=0, epoch=0)


def test_cutting_agrees_with_trying_every_row():
    budget = 30
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 12, (57, 2))
    order = rng.permutation(57)
    expected: list[list[int]] = [[]]
    for index in order.tolist():
        longer = [*expected[-1], index]
        if expected[-1] and len(longer) * max(max(lengths[i]) for i in longer) > budget:
            expected.append([index])
        else:
            expected[-1] = longer
    assert [rows.tolist() for rows in cut(order, lengths, budget)] == expected


@pytest.mark.parametrize("budget", [1024, 2048, 4096])
def test_at_most_five_percent_is_padding_on_lengths_like_multi30k(budget):
    lengths = like_multi30k(29_000)
    for epoch in range(2):
        assert padding(plan_epoch(lengths, [Share(29_000)], budget, seed=1, epoch=epoch), lengths) <= 0.05


def test_at_most_five_percent_is_padding_on_multi30k():
    folder = multi30k()
    pairs = list(read_parallel(folder / "train.en.gz", folder / "train.de.gz"))
    words = np.array([(len(p.source.split()) + 1, len(p.target.split()) + 1) for p in pairs])
    trigrams = np.array([(-(-len(p.source) // 3) + 1, -(-len(p.target) // 3) + 1) for p in pairs])
    for lengths in (words, trigrams):
        assert padding(plan_epoch(lengths, [Share(len(pairs))], 4096, seed=0, epoch=0), lengths) <= 0.05


def test_the_company_of_an_example_changes_from_epoch_to_epoch():
    """Of two examples in one batch, fewer than three in five pairs meet again in the next epoch."""
    lengths = like_multi30k(29_000)
    one, two = (plan_epoch(lengths, [Share(29_000)], 4096, seed=0, epoch=epoch) for epoch in (0, 1))
    batch = np.empty(29_000, dtype=np.int64)
    for number, rows in enumerate(two):
        batch[rows] = number
    again = sum(int((np.bincount(batch[rows]) * (np.bincount(batch[rows]) - 1)).sum()) for rows in one)
    assert again / sum(len(rows) * (len(rows) - 1) for rows in one) < 0.6


def test_batches_come_in_no_order_of_length():
    lengths = like_multi30k(29_000)
    longest = [lengths[rows].max() for rows in plan_epoch(lengths, [Share(29_000)], 2048, seed=0, epoch=0)]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_a_corpus_of_weight_w_appears_w_times_as_often():
    shares = [Share(40), Share(30, 2.5), Share(20, 0.25)]
    counts = np.bincount(np.concatenate(plan_epoch(like_multi30k(90), shares, 200, seed=0, epoch=0)), minlength=90)
    assert set(counts[:40]) == {1}
    assert sorted(set(counts[40:70])) == [2, 3]
    assert counts[40:70].sum() == 75
    assert sorted(set(counts[70:])) == [0, 1]
    assert counts[70:].sum() == 5


def test_the_fraction_of_a_weight_is_another_part_each_epoch_and_even_in_the_long_run():
    counts = np.zeros(50)
    for epoch in range(200):
        rng = np.random.default_rng([0, epoch])
        counts += np.bincount(draw([Share(50, 0.5)], rng), minlength=50)
    assert counts.sum() == 200 * 25
    assert counts.min() > 60  # of 100 ± 7
    assert counts.max() < 140


def test_padding_is_the_share_of_empty_cells():
    lengths = np.array([[2, 5], [4, 3], [1, 1]])
    # First batch: 2 rows of 4 + 5 cells hold 14 tokens; the second is full.
    assert padding([np.array([0, 1]), np.array([2])], lengths) == pytest.approx(4 / 20)
    assert padding([], lengths) == 0.0


def test_the_largest_batch_has_most_cells():
    lengths = np.array([[2, 5], [4, 3], [9, 9], [1, 1]])
    plan = [np.array([0, 1]), np.array([2]), np.array([3, 3, 3])]  # 18, 18 and 6 cells
    assert largest(plan[1:], lengths).tolist() == [2]
    assert largest([np.array([0, 1, 3]), *plan], lengths).tolist() == [0, 1, 3]


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_a_batch_is_divided_into_even_parts_that_pad_less(parts):
    lengths = like_multi30k(3_000)
    plan = plan_epoch(lengths, [Share(3_000)], 2048, seed=1, epoch=0)
    whole = [rows for rows in plan if len(rows) >= 40]
    found = [divide(rows, lengths, parts) for rows in whole]
    for rows, some in zip(whole, found, strict=True):
        assert len(some) == parts
        assert flat(some) == sorted(rows.tolist())
        cells = [cells_of(part, lengths) for part in some]
        assert max(cells) - min(cells) <= 0.2 * max(cells)
    apart, shuffled = (
        [part for some in all_of for part in some] for all_of in (found, [interleaved(r, parts) for r in whole])
    )
    assert padding(apart, lengths) <= padding(shuffled, lengths) - (0.005 if parts > 1 else 0)


def interleaved(rows: np.ndarray, parts: int) -> list[np.ndarray]:
    return [rows[place::parts] for place in range(parts)]


def test_two_parts_are_the_best_cut_of_all():
    """Sorted by source − target: every cut is tried, and none has a smaller larger part."""
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 30, (25, 2))
    one, two = divide(np.arange(25), lengths, 2)
    order = sorted(range(25), key=lambda i: lengths[i, 0] - lengths[i, 1])
    worst = [max(cells_of(np.array(order[:k]), lengths), cells_of(np.array(order[k:]), lengths)) for k in range(1, 25)]
    assert max(cells_of(one, lengths), cells_of(two, lengths)) == min(worst)


def test_no_part_of_a_batch_is_empty():
    lengths = np.array([[3, 4], [5, 2]])
    assert [part.tolist() for part in divide(np.array([1, 0]), lengths, 4)] == [[0], [1]]
    assert [part.tolist() for part in divide(np.array([1]), lengths, 2)] == [[1]]
