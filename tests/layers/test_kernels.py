"""Each kernel against the reference, and each cache against the whole input."""

import pytest
import torch

from regard.layers.attention import attend
from regard.layers.kernels import Full, Linear, Window, by_pair

KERNELS = {
    "full": Full,
    "window": lambda causal: Window(causal, size=2),
    "linear": Linear,
}
BIASED = ["full", "window"]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(2)


def qkv(queries, keys, n=2, h=3, e=4, f=5, dtype=torch.float64):
    shapes = ((n, h, queries, e), (n, h, keys, e), (n, h, keys, f))
    return tuple(torch.randn(*shape, dtype=dtype) for shape in shapes)


def small_blocks(kernel):
    """So that a short test meets several blocks and a ragged last one."""
    if isinstance(kernel, Window):
        kernel.block = 3
    if isinstance(kernel, Linear):
        kernel.chunk = 3
    return kernel


def seen_by(kernel, k, v):
    return kernel.extend(kernel.begin(k[:, :, :0], v[:, :, :0]), k, v)


def padding(n, keys):
    mask = torch.ones(n, keys, dtype=torch.bool)
    mask[0, keys // 2 :] = False
    return mask


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 5, 11])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_the_fast_form_is_the_exact_weights_times_the_values(name, causal, masked, length, dtype, tolerance):
    kernel = small_blocks(KERNELS[name](causal))
    q, k, v = qkv(length, length, dtype=dtype)
    seen, mask = seen_by(kernel, k, v), padding(2, length) if masked else None
    exact = kernel.weights(q, seen, mask, None) @ v
    torch.testing.assert_close(kernel(q, seen, mask, None), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", BIASED)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 5, 11])
def test_a_bias_by_distance_reaches_the_fast_form_and_the_weights_alike(name, causal, masked, length):
    kernel = small_blocks(KERNELS[name](causal))
    q, k, v = qkv(length, length)
    bias = torch.randn(3, 2 * length - 1, dtype=torch.float64)
    seen, mask = seen_by(kernel, k, v), padding(2, length) if masked else None
    weights = kernel.weights(q, seen, mask, bias)
    torch.testing.assert_close(kernel(q, seen, mask, bias), weights @ v)
    if length > 1:
        assert not torch.allclose(weights, kernel.weights(q, seen, mask, None))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
def test_weights_are_a_distribution_over_what_is_visible(name, causal):
    kernel, (q, k, v) = KERNELS[name](causal), qkv(6, 6)
    mask = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])
    weights = kernel.weights(q, seen_by(kernel, k, v), mask, None)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 6, dtype=torch.float64))
    assert (weights >= 0).all()
    assert (weights[0, :, :, 4:] == 0).all()
    if causal:
        assert (weights.triu(1) == 0).all()


def test_full_weights_are_those_of_attend():
    q, k, v = qkv(3, 4)
    kernel = Full(causal=False)
    torch.testing.assert_close(kernel.weights(q, seen_by(kernel, k, v), None, None), attend(q, k, v)[1])


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_is_attend_under_a_band(causal):
    q, k, v = qkv(11, 11)
    kernel = small_blocks(Window(causal, size=2))
    band = torch.tensor([[-2 <= j - i <= (0 if causal else 2) for j in range(11)] for i in range(11)])
    torch.testing.assert_close(kernel(q, seen_by(kernel, k, v), None, None), attend(q, k, v, band)[0])


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_is_a_plain_loop(causal):
    q, k, v = qkv(4, 4, n=1, h=1)
    kernel = Linear(causal)
    ours = kernel(q, seen_by(kernel, k, v), None, None)[0, 0]
    phi = lambda x: torch.where(x > 0, x + 1, x.exp())  # noqa: E731
    for i in range(4):
        keys = range(i + 1) if causal else range(4)
        scores = [(phi(q[0, 0, i]) * phi(k[0, 0, j])).sum() for j in keys]
        expected = sum(s * v[0, 0, j] for s, j in zip(scores, keys, strict=True)) / sum(scores)
        torch.testing.assert_close(ours[i], expected)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("pieces", [(9,), (1,) * 9, (4, 1, 4), (1, 8), (8, 1)])
def test_a_causal_kernel_fed_in_pieces_gives_what_the_whole_gives(name, pieces):
    kernel, (q, k, v) = small_blocks(KERNELS[name](True)), qkv(9, 9)
    whole = kernel(q, seen_by(kernel, k, v), None, None)
    seen, outputs = kernel.begin(k[:, :, :0], v[:, :, :0]), []
    for part in zip(*(x.split(pieces, 2) for x in (q, k, v)), strict=True):
        seen = kernel.extend(seen, part[1], part[2])
        outputs.append(kernel(part[0], seen, None, None))
    torch.testing.assert_close(torch.cat(outputs, 2), whole)


@pytest.mark.parametrize("name", BIASED)
@pytest.mark.parametrize("pieces", [(1,) * 9, (4, 1, 4), (1, 8)])
def test_pieces_agree_with_the_whole_under_a_bias(name, pieces):
    kernel, (q, k, v) = small_blocks(KERNELS[name](True)), qkv(9, 9)
    by_distance = torch.randn(3, 17, dtype=torch.float64)  # distances −8 … 8
    whole = kernel(q, seen_by(kernel, k, v), None, by_distance)
    seen, outputs, start = kernel.begin(k[:, :, :0], v[:, :, :0]), [], 0
    for part in zip(*(x.split(pieces, 2) for x in (q, k, v)), strict=True):
        new = part[0].shape[2]
        bias = by_distance[:, 8 - (start + new - 1) : 8 + new]
        seen = kernel.extend(seen, part[1], part[2])
        outputs.append(kernel(part[0], seen, None, bias))
        torch.testing.assert_close(kernel.weights(part[0], seen, None, bias) @ seen.values, outputs[-1])
        start += new
    torch.testing.assert_close(torch.cat(outputs, 2), whole)


def test_caches_of_window_and_linear_do_not_grow_with_the_past():
    _, k, v = qkv(30, 30)
    window, linear = Window(True, size=4), Linear(True)
    near, sums = (kernel.begin(k[:, :, :0], v[:, :, :0]) for kernel in (window, linear))
    for i in range(30):
        near = window.extend(near, k[:, :, i : i + 1], v[:, :, i : i + 1])
        sums = linear.extend(sums, k[:, :, i : i + 1], v[:, :, i : i + 1])
    assert near.keys.shape[2] == 5
    assert sums.keys.shape[2] == 1


def test_linear_weights_lack_what_the_sums_remember():
    kernel, (q, k, v) = Linear(True), qkv(6, 6)
    whole = kernel.weights(q, seen_by(kernel, k, v), None, None)
    later = kernel.extend(seen_by(kernel, k[:, :, :4], v[:, :, :4]), k[:, :, 4:], v[:, :, 4:])
    torch.testing.assert_close(kernel.weights(q[:, :, 4:], later, None, None), whole[:, :, 4:, 4:])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
def test_a_row_that_sees_nothing_gets_zeros_and_finite_gradients(name, causal):
    kernel = small_blocks(KERNELS[name](causal))
    q, k, v = (x.requires_grad_() for x in qkv(8, 8))
    mask = torch.tensor([[False] * 8, [True] * 8])
    out = kernel(q, seen_by(kernel, k, v), mask, None)
    assert out[0].count_nonzero() == 0
    assert out[1].count_nonzero() == out[1].numel()
    assert kernel.weights(q, seen_by(kernel, k, v), mask, None)[0].count_nonzero() == 0
    out.square().sum().backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_of_the_fast_form_are_those_of_the_weights(name):
    kernel = small_blocks(KERNELS[name](True))
    q, k, v = (x.requires_grad_() for x in qkv(8, 8))
    target = torch.randn(2, 3, 8, 5, dtype=torch.float64)
    seen = seen_by(kernel, k, v)
    fast = torch.autograd.grad((kernel(q, seen, None, None) * target).sum(), (q, k, v), retain_graph=True)
    slow = torch.autograd.grad(((kernel.weights(q, seen, None, None) @ v) * target).sum(), (q, k, v))
    for ours, theirs in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_attention_dropout_acts_in_training_only_and_keeps_the_mean():
    kernel, (q, k, _) = Full(causal=False, dropout=0.5), qkv(2, 200)
    v = torch.ones(2, 3, 200, 1, dtype=torch.float64)
    seen = seen_by(kernel, k, v)
    in_training = kernel(q, seen, None, None)
    assert not torch.allclose(in_training, torch.ones_like(in_training))
    assert in_training.mean().item() == pytest.approx(1.0, abs=0.2)
    torch.testing.assert_close(kernel.eval()(q, seen, None, None), torch.ones_like(in_training))


def test_a_bias_by_distance_is_laid_out_by_pair():
    bias = torch.arange(-3.0, 2.0)[None]  # distances −3 … 1: two queries after two earlier keys
    pairs = by_pair(bias, queries=2, keys=4)
    assert pairs is not None
    assert pairs[0].tolist() == [[-2.0, -1.0, 0.0, 1.0], [-3.0, -2.0, -1.0, 0.0]]
