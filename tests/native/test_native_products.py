"""Products of two matrices are those of torch, whoever computes them."""

from itertools import product

import pytest
import torch

from regard.native import products
from regard.native.library import library
from regard.native.products import apart, fits, mm, turned

SIZES = [(1, 1, 1), (3, 5, 2), (37, 300, 17), (330, 257, 250), (9, 16, 48)]  # less and more than a block each way


def noise(rows, columns, by_columns=False, seed=0):
    found = torch.randn(
        *((columns, rows) if by_columns else (rows, columns)), generator=torch.Generator().manual_seed(seed)
    )
    return found.mT if by_columns else found


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def ours(monkeypatch):
    """Ours, also where torch is as fast."""
    if library is None:
        pytest.skip("needs the compiled part of regard, and so a C compiler")
    monkeypatch.setattr(products, "PAYS", True)
    calls = []

    class Counting:
        def sgemm(self, *words):
            calls.append(words)
            library.sgemm(*words)

    monkeypatch.setattr(products, "library", Counting())
    return calls


@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
@pytest.mark.parametrize(("a_turned", "b_turned"), list(product((False, True), repeat=2)))
def test_our_products_are_those_of_float64(ours, rows, inner, columns, a_turned, b_turned):
    a, b = noise(rows, inner, a_turned), noise(inner, columns, b_turned, seed=1)
    expected = (a.double() @ b.double()).float()
    torch.testing.assert_close(mm(a, b), expected, rtol=1e-5, atol=1e-4)
    before = noise(rows, columns, seed=2)
    torch.testing.assert_close(mm(a, b, out=before.clone(), more=True), before + expected, rtol=1e-5, atol=1e-4)
    empty = torch.full((rows, columns), torch.nan)
    assert mm(a, b, out=empty) is empty
    torch.testing.assert_close(empty, expected, rtol=1e-5, atol=1e-4)
    assert len(ours) == 3


def test_our_products_read_and_write_parts_of_larger_matrices(ours):
    a, b, out = noise(20, 30), noise(40, 50, seed=1), torch.zeros(25, 60)
    mm(a[3:10, 5:25], b[7:27, 4:37], out=out[2:9, 6:39])
    expected = torch.zeros(25, 60)
    expected[2:9, 6:39] = a[3:10, 5:25] @ b[7:27, 4:37]
    torch.testing.assert_close(out, expected)
    assert len(ours) == 1


@pytest.mark.parametrize(("rows", "inner", "columns"), [(3, 0, 2), (0, 3, 2), (3, 2, 0)])
def test_a_product_over_nothing_is_zero(ours, rows, inner, columns):
    a, b, out = noise(rows, inner), noise(inner, columns), torch.full((rows, columns), torch.nan)
    assert torch.equal(mm(a, b, out=out), torch.zeros(rows, columns))
    assert torch.equal(mm(a, b, out=out, more=True), out)


@pytest.mark.parametrize("pays", [False, True])
def test_what_several_threads_share_or_has_other_numbers_is_torchs(ours, monkeypatch, pays):
    monkeypatch.setattr(products, "PAYS", pays)
    a, b = noise(3, 4), noise(4, 5, seed=1)
    torch.testing.assert_close(mm(a.double(), b.double()), a.double() @ b.double())
    assert not fits(noise(6, 8)[::2, ::2])
    torch.testing.assert_close(mm(noise(6, 8)[::2, ::2], b), noise(6, 8)[::2, ::2] @ b)
    torch.set_num_threads(2)
    assert torch.equal(mm(a, b), a @ b)
    assert not ours
    assert products.sgemm() == products.of_torch()


def test_a_matrix_that_is_too_small_for_a_product_is_refused(ours):
    with pytest.raises(RuntimeError):
        mm(noise(3, 4), noise(4, 2), out=torch.zeros(3, 5))
    assert not ours


def test_without_ours_products_are_torchs_to_the_bit(monkeypatch):
    monkeypatch.setattr(products, "PAYS", False)
    a, b, out = noise(3, 4), noise(4, 5, seed=1), noise(3, 5, seed=2)
    assert torch.equal(mm(a, b), a @ b)
    assert torch.equal(mm(a, b, out=out.clone(), more=True), torch.addmm(out, a, b))
    assert torch.equal(mm(a, b, out=torch.full((3, 5), torch.nan)), a @ b)


def test_a_turned_matrix_is_one_whose_columns_follow_each_other():
    x = noise(3, 4)
    assert (turned(x), apart(x)) == (b"N", 4)
    assert (turned(x.mT), apart(x.mT)) == (b"T", 4)
