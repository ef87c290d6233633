"""What is computed in one pass while training is what the layers compute in several, with its gradients."""

import pytest
import torch

from regard.layers import consistency
from regard.layers.attention import SelfAttention
from regard.layers.consistency import consistent_cross_entropy, divergence
from regard.layers.dropout import Dropout, keep_mask, random_bytes
from regard.layers.kernels import Full
from regard.layers.loss import differentiate, smoothed_cross_entropy
from regard.layers.positions import sinusoids
from regard.layers.relations import Relative, rotate
from regard.native.library import library
from regard.native.training import drop_add, fits, gelu, turned

pytestmark = pytest.mark.skipif(library is None, reason="needs the compiled part of regard, and so a C compiler")


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def agree(ours, theirs, inputs):
    """The same values, and for the same gradient of the result the same gradients of the inputs."""
    torch.testing.assert_close(ours, theirs)
    gradient = torch.randn(ours.shape, generator=torch.Generator().manual_seed(9))
    for mine, other in zip(*(torch.autograd.grad(y, inputs, gradient) for y in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 7, 33)])
@pytest.mark.parametrize("threshold", [1, 26, 255])
def test_what_is_dropped_and_added_is_the_plain_sum(shape, threshold):
    z, y = noise(*shape), noise(*shape, seed=1)
    random = random_bytes(z.detach(), torch.Generator().manual_seed(2))
    mask = keep_mask(z.detach(), threshold, torch.Generator().manual_seed(2))
    agree(drop_add(z, y, random, threshold), z + y * mask * (256 / (256 - threshold)), [z, y])


def test_gradients_that_stand_in_another_order_are_read_in_theirs():
    z, y, random = noise(4, 6), noise(4, 6, seed=1), torch.randint(0, 256, (4, 6), dtype=torch.uint8)
    gradient = torch.randn(6, 4).mT
    found = torch.autograd.grad(drop_add(z, y, random, 128), [z, y], gradient)
    torch.testing.assert_close(found[1], gradient * (random >= 128) * 2.0)


def test_gelu_is_that_of_double_precision_everywhere():
    x = torch.cat([torch.linspace(-12, 12, 4801), torch.tensor([0.0, -1e-30, 1e30, -1e30])]).requires_grad_()
    wide = x.detach().double().requires_grad_()
    ours, exact = gelu(x), torch.nn.functional.gelu(wide)
    torch.testing.assert_close(ours, exact.float(), rtol=1e-6, atol=1e-6)
    found, expected = (torch.autograd.grad(y.sum(), at)[0] for y, at in ((ours, x), (exact, wide)))
    torch.testing.assert_close(found, expected.float(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("heads", "width"), [(1, 2), (3, 4), (2, 32)])
def test_turned_queries_and_keys_are_those_of_the_formula(heads, width):
    x, angles = noise(2, 5, 3 * heads * width), sinusoids(9, width)[4:].float()
    q, k, v = x.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    expected = torch.stack([rotate(q, angles), rotate(k, angles), v]).permute(1, 3, 0, 2, 4).flatten(2)
    agree(turned(x * 1.0, angles, 2 * heads), expected, [x])


def test_rotary_attention_is_that_of_double_precision():
    torch.manual_seed(1)
    layer, x = SelfAttention(8, 2, 4, Full(causal=True)), torch.randn(2, 5, 8)
    angles, exact = sinusoids(5, 4), SelfAttention(8, 2, 4, Full(causal=True)).double()
    exact.load_state_dict(layer.state_dict())
    ours = layer(x, layer.begin(x), None, Relative(angles=angles.float()))[0]
    theirs = exact(x.double(), exact.begin(x.double()), None, Relative(angles=angles))[0]
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", [2, 16, 37, 1000])
@pytest.mark.parametrize("offset", [0.0, 300.0, -300.0])
def test_the_loss_and_its_gradients_are_those_of_double_precision(smoothing, vocabulary, offset):
    logits = (3 * noise(5, vocabulary) + offset).detach()
    targets, exact = torch.arange(5) % vocabulary, logits.double().requires_grad_()
    expected = smoothed_cross_entropy(exact, targets, smoothing)
    (gradients,) = torch.autograd.grad(expected, exact)
    assert differentiate(logits, targets, smoothing) == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(logits.double(), gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", [2, 16, 37, 1000])
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_two_passes_that_must_agree_are_those_of_double_precision(smoothing, vocabulary, offset):
    logits = torch.stack([2 * noise(5, vocabulary) + offset, 2 * noise(5, vocabulary, seed=1) - offset]).detach()
    targets, exact = torch.arange(5) % vocabulary, logits.double().requires_grad_()
    expected = consistent_cross_entropy(*exact, targets, smoothing, 5.0)
    (gradients,) = torch.autograd.grad(expected, exact)
    entropy, apart = consistency.differentiate(logits, targets, smoothing, 5.0)
    assert apart == pytest.approx(divergence(*exact).item(), rel=1e-4)
    assert entropy + 5.0 / 4 * apart == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(logits.double(), gradients, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("target", [-1, 7])
def test_a_target_outside_the_vocabulary_is_refused(target):
    with pytest.raises(IndexError, match=f"found {target} to {target}, expected ids below 7"):
        differentiate(torch.zeros(1, 7), torch.tensor([target]), 0.1)
    with pytest.raises(IndexError, match=f"found {target} to {target}, expected ids below 7"):
        consistency.differentiate(torch.zeros(2, 1, 7), torch.tensor([target]), 0.1, 5.0)


def test_other_precisions_are_left_to_torch():
    assert fits(torch.zeros(1))
    assert not fits(torch.zeros(1), torch.zeros(1).double())
    dropout, z = Dropout(0.5), torch.zeros(4).double()
    assert dropout.onto(z, z).dtype == torch.float64
