"""Compiled attention against the reference in double precision, forwards and backwards."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from regard.errors import TrainingError
from regard.layers import masks
from regard.layers.attention import attend, merge_heads
from regard.layers.cache import KeyValues
from regard.layers.kernels import Full
from regard.native.attention import LONGEST, PAYS, attention, check, suits
from regard.native.library import library

needed = pytest.mark.skipif(library is None, reason="needs the compiled part of regard, and so a C compiler")
faster = pytest.mark.skipif(not PAYS, reason="torch's kernel is as fast on this processor, and used instead")
SIZES = [  # n, h, queries, keys, width
    (1, 1, 1, 1, 1),
    (2, 3, 4, 7, 5),
    (2, 3, 7, 4, 5),
    (3, 2, 6, 1, 64),
    (2, 2, 15, 15, 64),
    (2, 1, 13, 17, 24),
    (1, 2, 35, 70, 48),
]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(2)


def qkv(n, h, queries, keys, width, scale=1.0):
    return tuple((scale * torch.randn(n, h, t, width)).requires_grad_() for t in (queries, keys, keys))


def with_holes(n, keys):
    """Every other sentence sees nothing."""
    mask = torch.rand(n, keys) < 0.6
    mask[::2] = False
    return mask


def exact(q, k, v, mask, causal):
    future = masks.causal(q.shape[2], k.shape[2]) if causal else None
    return attend(q, k, v, masks.both(masks.over_keys(mask), future))[0]


def assert_agrees(inputs, mask, causal):
    """Output and gradients of all inputs, in float32, are those of the reference in float64."""
    doubles = [x.detach().double().requires_grad_() for x in inputs]
    ours, theirs = attention(*inputs, mask, causal), exact(*doubles, mask, causal)
    g = torch.randn(ours.shape)
    found = (ours, *torch.autograd.grad(ours, inputs, g))
    expected = (theirs, *torch.autograd.grad(theirs, doubles, g.double()))
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-5)


@needed
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_output_and_gradients_are_those_of_the_reference(sizes, masked, causal):
    n, _, _, keys, _ = sizes
    assert_agrees(qkv(*sizes), with_holes(n, keys) if masked else None, causal)


@needed
@pytest.mark.parametrize("score", [2560, -2560])
@pytest.mark.parametrize("causal", [False, True])
def test_scores_far_from_zero_overflow_nowhere(score, causal):
    q, _, v = qkv(2, 2, 9, 9, 4)
    q = torch.full_like(q, 64.0).requires_grad_()
    k = score / 128 + torch.randint(-3, 4, q.shape) / 256  # so that scores, all near `score`, are exact in float32
    assert_agrees((q, k.requires_grad_(), v), None, causal)


@needed
def test_any_layout_gives_the_same_bits():
    q, k, v = (x.detach() for x in qkv(2, 3, 5, 7, 4))
    packed = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
    apart = [torch.stack([x, x], -1)[..., 0] for x in (q, k, v)]  # gaps inside a vector
    mask, g = with_holes(2, 7), torch.randn(2, 3, 5, 4)
    results = []
    for inputs in ((q, k, v), packed, apart):
        inputs = [x.requires_grad_() for x in inputs]
        out = attention(*inputs, mask.mT.contiguous().mT, False)
        results.append((out, *torch.autograd.grad(out, inputs, g)))
    for other in results[1:]:
        assert all(torch.equal(x, y) for x, y in zip(results[0], other, strict=True))


@needed
def test_a_gradient_that_repeats_one_number_is_read_right():
    inputs = qkv(2, 3, 5, 7, 4)
    doubles = [x.detach().double().requires_grad_() for x in inputs]
    ours = torch.autograd.grad(attention(*inputs, None, False).sum(), inputs)
    theirs = torch.autograd.grad(exact(*doubles, None, False).sum(), doubles)
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-5)


@needed
def test_heads_are_merged_without_a_copy():
    out = attention(*qkv(2, 3, 5, 7, 4), None, False)
    assert merge_heads(out).data_ptr() == out.data_ptr()


@needed
def test_threads_do_not_disturb_each_other():
    def run(seed):
        x = torch.randn(3, 8, 4, 33, 16, generator=torch.Generator().manual_seed(seed)).requires_grad_()
        return torch.autograd.grad(attention(*x, None, True).square().sum(), x)[0]

    alone = [run(seed) for seed in range(20)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, range(20)))
    assert all(torch.equal(x, y) for x, y in zip(alone, together, strict=True))


@faster
@pytest.mark.parametrize("causal", [False, True])
def test_the_full_kernel_uses_it_in_training_and_agrees_with_itself_at_rest(causal):
    q, k, v = qkv(2, 3, 5, 5, 4)
    kernel, mask = Full(causal), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    trained = kernel(q, KeyValues(k, v), mask, None)
    assert "Attention" in type(trained.grad_fn).__name__
    with torch.no_grad():
        torch.testing.assert_close(kernel(q, KeyValues(k, v), mask, None), trained)


@faster
def test_what_it_cannot_take_is_left_to_torch():
    q, k, v = qkv(1, 1, 2, 3, 4)
    long = torch.zeros(1, 1, LONGEST + 1, 4)
    assert suits(q, k, v)
    assert not suits(q.detach(), k.detach(), v.detach())
    assert not suits(q.double(), k.double(), v.double())
    assert not suits(q, k, v[..., :3])
    assert not suits(q, long, long)
    assert not suits(q, k[:, :, :0], v[:, :, :0])


def test_a_call_that_found_no_memory_is_an_error():
    with pytest.raises(TrainingError, match="no memory left"):
        check(0)
