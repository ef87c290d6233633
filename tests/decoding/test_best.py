"""The quick ways to the likeliest tokens find what the plain ways find."""

import pytest
import torch

from regard.decoding.best import HEIGHT, best_continuations, likeliest, log_softmax_

INF, NAN = float("inf"), float("nan")
COLUMNS = (1, 2, 63, 64, 65, 130, 1000)  # around the height of a stack, and far from it


def noise(*shape, seed=0, scale=3.0):
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def only(column, value, columns=70):
    row = torch.full((1, columns), -INF, dtype=torch.float64)
    row[0, column] = value
    return row


ROWS = {
    "ordinary": noise(3, 70),
    "one column": noise(4, 1),
    "sum near the largest that is taken at once": noise(2, 70) + 60,
    "sum near the smallest that is taken at once": noise(2, 70) - 70,
    "huge": noise(2, 70) + 1e4,
    "tiny": noise(2, 70) - 1e4,
    "far apart": torch.tensor([[1e4, -1e4, 0.0], [-800.0, -801.0, -INF]], dtype=torch.float64),
    "all but one impossible": torch.cat([only(69, 2.0), only(0, -5.0)]),
    "all but a huge one impossible": torch.cat([only(3, 900.0), only(3, -900.0)]),
    "ordinary beside huge and tiny": torch.cat([noise(1, 70), noise(1, 70) + 5e3, noise(1, 70) - 5e3]),
    "NaN beside ordinary": torch.cat([noise(1, 70), torch.full((1, 70), NAN, dtype=torch.float64), noise(1, 70)]),
    "nothing possible": torch.full((2, 3), -INF, dtype=torch.float64),
    "no rows": noise(0, 5),
}


@pytest.mark.parametrize("name", ROWS)
def test_log_softmax_agrees_with_torch(name):
    torch.testing.assert_close(
        log_softmax_(ROWS[name].clone()), ROWS[name].log_softmax(-1), rtol=1e-12, atol=1e-12, equal_nan=True
    )


@pytest.mark.parametrize("name", ROWS)
def test_log_softmax_in_single_precision_errs_by_rounding_alone(name):
    rounded = ROWS[name].float()
    exact = rounded.double().log_softmax(-1)
    torch.testing.assert_close(log_softmax_(rounded).double(), exact, rtol=1e-6, atol=2e-5, equal_nan=True)


@pytest.mark.parametrize("name", ["ordinary", "huge"])
def test_log_softmax_is_written_over_its_argument(name):
    x = ROWS[name].clone()
    found = log_softmax_(x)
    assert found.data_ptr() == x.data_ptr()
    assert torch.equal(found, x)


def test_log_softmax_worked_by_hand():
    x = torch.tensor([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0]], dtype=torch.float64)
    assert log_softmax_(x.log()).exp().flatten().tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8, 1 / 4, 1 / 4, 2 / 4])


# ---------------------------------------------------------------- the likeliest
@pytest.mark.parametrize("columns", COLUMNS)
def test_the_likeliest_is_the_argmax(columns):
    x = noise(7, columns)
    assert torch.equal(likeliest(x), x.argmax(-1))


@pytest.mark.parametrize("column", [0, 63, 64, 127, 128, 129])
def test_the_likeliest_may_stand_anywhere(column):
    assert likeliest(
        torch.cat([only(column, -4.0, columns=130), noise(1, 130).index_fill(1, torch.tensor([column]), 99.0)])
    ).tolist() == [column, column]


def test_the_first_of_equals_is_the_likeliest():
    x = torch.zeros(3, 150)
    x[0, [70, 71, 140]] = 1.0
    x[1] = -INF
    assert likeliest(x).tolist() == [70, 0, 0]


def test_a_nan_is_found_so_that_it_can_be_refused():
    x = noise(2, 100)
    x[0, 80] = NAN
    assert likeliest(x).tolist() == [80, int(x[1].argmax())]


def test_no_rows_have_no_likeliest():
    assert likeliest(noise(0, 100)).tolist() == []


# ---------------------------------------------------------------- the best continuations
def plain(log_probs, total, k):
    """The k largest sums of all, by sorting."""
    sums = (log_probs.view(*total.shape, -1) + total[..., None]).flatten(1)
    return sums.sort(1, descending=True).values[:, :k]


def agree(log_probs, total, k):
    n, w = total.shape
    best, row, column = best_continuations(log_probs, total, k)
    assert torch.equal(best, plain(log_probs, total, k))
    assert row.min() >= 0 <= column.min()
    assert row.max() < w
    assert column.max() < log_probs.shape[1]
    sums = log_probs.view(n, w, -1) + total[..., None]
    possible = best > -INF
    assert torch.equal(sums[torch.arange(n)[:, None], row, column][possible], best[possible])
    for sentence in range(n):
        cells = list(
            zip(row[sentence][possible[sentence]].tolist(), column[sentence][possible[sentence]].tolist(), strict=True)
        )
        assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("w", "k"), [(1, 1), (1, 2), (2, 4), (5, 10)])
def test_the_best_continuations_are_the_top_of_all_sums(columns, w, k):
    agree(noise(3 * w, columns), noise(3, w, seed=1), k)


@pytest.mark.parametrize("columns", COLUMNS)
def test_hypotheses_that_are_no_more_have_no_continuation(columns):
    total = noise(3, 2, seed=1)
    total[0, 1] = total[1, 0] = total[2, 0] = total[2, 1] = -INF
    agree(noise(6, columns), total, 2)
    _, row, _ = best_continuations(noise(6, columns), total, 1)
    assert row[:2].flatten().tolist() == [0, 1]


@pytest.mark.parametrize("columns", [65, 130, 324, 387, 1000])
def test_where_little_is_possible_every_column_is_still_one_of_the_rows(columns):
    """A forced token leaves one possibility, and what fills the last stack must not be taken for a second."""
    for allowed in ([0], [columns // 2], [columns - 1], [1, 63, columns - 1]):
        log_probs = torch.full((20, columns), -INF, dtype=torch.float64)
        log_probs[:, allowed] = noise(20, len(allowed))
        for w in (1, 2, 5):
            for k in (1, 2, 4, 10):
                agree(log_probs, noise(20 // w, w, seed=2), k)


def test_equals_are_all_found():
    log_probs = torch.zeros(2, 5 * HEIGHT)
    log_probs[1] = -1.0
    best, row, column = best_continuations(log_probs, torch.zeros(1, 2), 4)
    assert best.tolist() == [[0.0] * 4]
    assert row.tolist() == [[0] * 4]
    assert len(set(column[0].tolist())) == 4


def test_fewer_cells_than_asked_for_are_all_returned():
    best, row, column = best_continuations(torch.tensor([[-1.0, -3.0], [-2.0, -9.0]]), torch.tensor([[-1.0, -0.5]]), 7)
    assert best.tolist() == [[-2.0, -2.5, -4.0, -9.5]]
    assert row.tolist() == [[0, 1, 0, 1]]
    assert column.tolist() == [[0, 0, 1, 1]]


def test_nan_comes_first_so_that_it_can_be_refused():
    log_probs = noise(2, 900)
    log_probs[1, 450] = NAN
    assert best_continuations(log_probs, torch.zeros(2, 1).double(), 3)[0].isnan()[:, 0].tolist() == [False, True]


def test_rows_may_stand_further_apart_than_they_are_long():
    log_probs, total = noise(6, 5 * HEIGHT + 1)[:, :-1], noise(3, 2, seed=1)
    agree(log_probs, total, 2)
    agree(log_probs, total, 12)
    assert torch.equal(likeliest(log_probs), log_probs.argmax(-1))
