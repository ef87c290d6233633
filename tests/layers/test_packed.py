"""Packed projections, taken apart and put together."""

import pytest
import torch

from regard.layers.packed import Unpack, unpack


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_and_gradients_are_those_of_plain_views(parts):
    packed = torch.randn(2, 5, parts * 3 * 4, dtype=torch.float64, requires_grad=True)
    plain = packed.unflatten(-1, (parts, 3, 4)).permute(2, 0, 3, 1, 4)
    ours = unpack(packed, parts, 3)
    assert torch.equal(torch.stack(ours), plain)
    factors = torch.randn(plain.shape, dtype=torch.float64)
    expected = torch.autograd.grad((plain * factors).sum(), packed)[0]
    found = torch.autograd.grad(sum((x * f).sum() for x, f in zip(ours, factors, strict=True)), packed)[0]
    assert torch.equal(found, expected)


def test_a_part_that_nobody_used_has_gradient_zero():
    packed = torch.randn(2, 5, 24, requires_grad=True)
    gradient = torch.autograd.grad(unpack(packed, 2, 3)[1].sum(), packed)[0]
    assert gradient.unflatten(-1, (2, 12)).mean((0, 1, 3)).tolist() == [0.0, 1.0]


def test_gradients_side_by_side_are_not_copied():
    whole = torch.randn(2, 5, 3, 4, 6)
    q, k, v = whole.permute(2, 0, 3, 1, 4).unbind()
    assert Unpack.backward(None, q, k, v) is whole


def test_gradients_in_another_order_are_copied():
    whole = torch.randn(2, 5, 3, 4, 6)
    q, k, v = whole.permute(2, 0, 3, 1, 4).unbind()
    assert torch.equal(Unpack.backward(None, k, q, v), whole[:, :, [1, 0, 2]])
