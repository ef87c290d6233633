"""Convolutions over time, against plain loops and torch's own."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.layers.convolution import (
    Convolution,
    DilatedBlock,
    GatedConvolution,
    convolve,
    follow,
    gated,
    surround,
)

N, T, WIDTH, OUT = 2, 7, 4, 3


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def mask_of(*lengths):
    return torch.arange(T) < torch.tensor(lengths)[:, None]


def causal_loop(x, weight, bias, rate):
    """y(t) = b + Σ_j W_j x(t − (k−1−j)·r) in plain Python, zeros before the beginning."""
    rows, taps = [], len(weight[0]) // len(x[0])
    for t in range(len(x)):
        y = list(bias)
        for j in range(taps):
            place = t - (taps - 1 - j) * rate
            if place >= 0:
                for o in range(len(y)):
                    y[o] += sum(weight[o][j * len(x[0]) + i] * x[place][i] for i in range(len(x[0])))
        rows.append(y)
    return rows


@pytest.mark.parametrize(("taps", "rate"), [(1, 1), (2, 1), (3, 1), (3, 2), (5, 3)])
def test_a_causal_dilated_convolution_is_a_loop_over_the_past(taps, rate):
    x, weight, bias = draw(N, T, WIDTH), draw(OUT, taps * WIDTH), draw(OUT)
    joined, _ = follow(x, x.new_zeros(N, (taps - 1) * rate, WIDTH))
    ours = convolve(joined, weight, bias, rate)
    theirs = [causal_loop(row.tolist(), weight.tolist(), bias.tolist(), rate) for row in x]
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64))


@pytest.mark.parametrize(("taps", "rate"), [(3, 1), (3, 2), (5, 1)])
def test_a_centred_convolution_agrees_with_torch(taps, rate):
    x, weight, bias, mask = draw(N, T, WIDTH), draw(OUT, taps * WIDTH), draw(OUT), mask_of(T, 4)
    ours = convolve(surround(x, mask, (taps - 1) * rate), weight, bias, rate)
    kernel = weight.view(OUT, taps, WIDTH).mT
    theirs = F.conv1d((x * mask[..., None]).mT, kernel, bias, dilation=rate, padding=(taps - 1) * rate // 2).mT
    torch.testing.assert_close(ours, theirs)


def test_the_past_of_the_next_call_is_what_was_seen_last():
    x, past = draw(N, 2, WIDTH), draw(N, 3, WIDTH)
    joined, later = follow(x, past)
    torch.testing.assert_close(joined, torch.cat([past, x], 1))
    torch.testing.assert_close(later, torch.cat([past[:, 2:], x], 1))
    assert follow(x, past[:, :0])[1].shape == (N, 0, WIDTH)  # one tap: there is nothing to remember


def test_a_gated_unit_by_hand():
    x = torch.tensor([[3.0, -2.0, 0.0, math.log(3.0)]])
    assert gated(x)[0].tolist() == pytest.approx([1.5, -1.5])  # σ(0) = ½, σ(log 3) = ¾


def test_a_dilated_block_is_its_equation():
    torch.manual_seed(2)
    block, x = DilatedBlock(6, taps=3, rate=2, dropout=nn.Identity()).double(), draw(N, T, 6)

    def a(x):
        return F.layer_norm(x, x.shape[-1:]).relu()

    inner = a(block.narrow(a(x)))
    kernel = block.convolution.linear.weight.view(3, 3, 3).mT
    seen = F.conv1d(inner.mT, kernel, block.convolution.linear.bias, dilation=2, padding=2).mT
    torch.testing.assert_close(block(x, mask_of(T, T)), x + block.widen(a(seen)))


@pytest.mark.parametrize(
    "make", [lambda: DilatedBlock(6, 3, 2, nn.Identity()), lambda: GatedConvolution(6, 3, nn.Identity(), 1.0)]
)
def test_going_on_in_pieces_equals_going_on_at_once(make):
    torch.manual_seed(3)
    layer, x = make().double(), draw(N, T, 6)
    start = layer.convolution.nothing(x)
    whole, end = layer.go_on(x, start)
    for cut in range(1, T):
        first, past = layer.go_on(x[:, :cut], start)
        second, past = layer.go_on(x[:, cut:], past)
        torch.testing.assert_close(torch.cat([first, second], 1), whole)
        torch.testing.assert_close(past, end)


@pytest.mark.parametrize(
    "make", [lambda: DilatedBlock(6, 3, 2, nn.Identity()), lambda: GatedConvolution(6, 3, nn.Identity(), 1.0)]
)
def test_what_stands_at_hidden_positions_reaches_no_visible_one(make):
    torch.manual_seed(4)
    layer, x, mask = make().double(), draw(N, T, 6), mask_of(5, 2)
    poisoned = x.masked_fill(~mask[..., None], 1e3)
    torch.testing.assert_close(layer(poisoned, mask)[mask], layer(x, mask)[mask])


def test_looking_back_through_doubling_rates_reaches_exactly_their_sum():
    """Three taps at rates 1, 2, 4: 2·(1+2+4) positions back and not one more. The point of dilation."""
    torch.manual_seed(5)
    layers, length = [Convolution(2, 2, 3, rate).double() for rate in (1, 2, 4)], 18

    def last(x):
        for layer in layers:
            x = layer(follow(x, layer.nothing(x))[0])
        return x[0, -1]

    x = draw(1, length, 2).requires_grad_()
    (gradient,) = torch.autograd.grad(last(x).sum(), x)
    assert gradient[0].abs().sum(-1).nonzero()[:, 0].tolist() == list(range(length - 15, length))


def test_a_gated_convolution_begins_with_the_variance_that_it_was_given():
    """With weights of variance 4/(k·d); dropout would raise the variance, and its share of the weights lowers it."""
    torch.manual_seed(6)
    layer = GatedConvolution(64, 3, nn.Identity(), kept=1.0)
    assert layer.convolution.linear.weight.var().item() == pytest.approx(4 / (3 * 64), rel=0.05)
    halved = GatedConvolution(64, 3, nn.Identity(), kept=0.5)
    assert halved.convolution.linear.weight.var().item() == pytest.approx(2 / (3 * 64), rel=0.05)
