import pytest
import torch
import torch.nn.functional as F

from regard.layers.norm import LayerNorm, LayerNormOutside, RMSNorm, layer_norm, layer_norm_outside, rms_norm


@pytest.fixture
def values():
    torch.manual_seed(3)
    return tuple(torch.randn(*shape, dtype=torch.float64) for shape in ((2, 3, 5), (5,), (5,)))


def test_layer_norm_agrees_with_torch_as_function_and_as_module(values):
    x, gain, shift = values
    theirs = F.layer_norm(x, (5,), gain, shift, 0.3)
    torch.testing.assert_close(layer_norm(x, gain, shift, 0.3), theirs)
    module = LayerNorm(5, epsilon=0.3).double()
    with torch.no_grad():
        module.gain.copy_(gain)
        module.shift.copy_(shift)
    torch.testing.assert_close(module(x), theirs)


def test_rms_norm_agrees_with_torch(values):
    x, gain, _ = values
    torch.testing.assert_close(rms_norm(x, gain, 0.3), F.rms_norm(x, (5,), gain, 0.3))
    torch.testing.assert_close(RMSNorm(5, epsilon=0.3).double()(x), F.rms_norm(x, (5,), None, 0.3))


def test_the_form_with_epsilon_outside_by_hand():
    x = torch.tensor([1.0, 3.0], dtype=torch.float64)  # μ = 2, σ = 1
    ones, zeros = torch.ones(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    torch.testing.assert_close(layer_norm_outside(x, ones, zeros, 0.25), torch.tensor([-0.8, 0.8]).double())
    torch.testing.assert_close(layer_norm_outside(x, 2 * ones, ones, 0.25), torch.tensor([-0.6, 2.6]).double())
    torch.testing.assert_close(LayerNormOutside(2, epsilon=0.25).double()(x), torch.tensor([-0.8, 0.8]).double())


def test_both_forms_are_one_without_epsilon(values):
    x, gain, shift = values
    torch.testing.assert_close(layer_norm_outside(x, gain, shift, 0.0), layer_norm(x, gain, shift, 0.0))


@pytest.mark.parametrize("norm", [LayerNorm, LayerNormOutside, RMSNorm])
def test_a_constant_row_has_a_finite_gradient(norm):
    x = torch.zeros(2, 4, requires_grad=True)
    norm(4)(x).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("norm", [LayerNorm, LayerNormOutside])
def test_shift_and_scale_of_the_input_are_forgotten(norm, values):
    x, _, _ = values
    torch.testing.assert_close(norm(5, 0.0).double()(7 * x - 2), norm(5, 0.0).double()(x))


@pytest.mark.parametrize("norm", [LayerNorm, LayerNormOutside, RMSNorm])
def test_no_row_sees_another_unlike_batch_norm(norm, values):
    x, _, _ = values
    module = norm(5).double()
    torch.testing.assert_close(module(x)[1], module(x[1:])[0])
    batch = torch.nn.BatchNorm1d(5, dtype=torch.float64)
    assert not torch.allclose(batch(x[:, 0])[1], batch(x[1:].flatten(0, 1))[0])
