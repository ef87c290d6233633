import pytest
import torch
import torch.nn.functional as F

from regard.layers.feedforward import FeedForward, GatedFeedForward


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
