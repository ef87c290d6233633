import math

import pytest
import torch
import torch.nn.functional as F

from regard.layers.feedforward import FeedForward, GatedFeedForward, gelu_tanh


@pytest.mark.parametrize("activation", [F.relu, F.gelu])
def test_the_plain_form_is_its_equation(activation):
    x, layer = torch.randn(2, 3, 4), FeedForward(4, 7, activation)
    w1, b1, w2, b2 = layer.inner.weight, layer.inner.bias, layer.outer.weight, layer.outer.bias
    torch.testing.assert_close(layer(x), activation(x @ w1.T + b1) @ w2.T + b2)


@pytest.mark.parametrize("activation", [F.silu, F.gelu, F.relu])
def test_the_gated_form_is_its_equation(activation):
    x, layer = torch.randn(2, 3, 4), GatedFeedForward(4, 7, activation)
    w, v = layer.inner.weight.chunk(2)
    b, c = layer.inner.bias.chunk(2)
    expected = (activation(x @ w.T + b) * (x @ v.T + c)) @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(x), expected)


def test_relu_by_hand():
    layer = FeedForward(1, 2, F.relu)
    with torch.no_grad():
        layer.inner.weight.copy_(torch.tensor([[2.0], [-1.0]]))
        layer.inner.bias.copy_(torch.tensor([1.0, 0.5]))
        layer.outer.weight.copy_(torch.tensor([[3.0, 10.0]]))
        layer.outer.bias.fill_(0.25)
    assert layer(torch.tensor([[2.0], [-2.0]])).flatten().tolist() == [15.25, 25.25]


def test_the_tanh_form_of_gelu_is_its_equation():
    x = torch.linspace(-4, 4, 17, dtype=torch.float64)
    inside = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    torch.testing.assert_close(gelu_tanh(x), 0.5 * x * (1 + inside.tanh()))
    assert 1e-5 < (gelu_tanh(x) - F.gelu(x)).abs().max() < 1e-3


def test_without_biases_the_origin_stays_where_it_is():
    x = torch.randn(2, 3, 4)
    plain, gated = FeedForward(4, 7, F.silu, bias=False), GatedFeedForward(4, 7, gelu_tanh, bias=False)
    w, v = gated.inner.weight.chunk(2)
    torch.testing.assert_close(plain(x), F.silu(x @ plain.inner.weight.T) @ plain.outer.weight.T)
    torch.testing.assert_close(gated(x), (gelu_tanh(x @ w.T) * (x @ v.T)) @ gated.outer.weight.T)
    assert {name for layer in (plain, gated) for name in layer.state_dict()} == {"inner.weight", "outer.weight"}
