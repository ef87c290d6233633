"""Laws of `attend` and of the modules around it."""

import math

import pytest
import torch
import torch.nn.functional as F

from regard.layers.attention import CrossAttention, SelfAttention, attend, merge_heads, split_heads
from regard.layers.cache import KeyValues
from regard.layers.kernels import Full
from regard.layers.relations import Relative


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def test_attend_agrees_with_torch_when_values_have_their_own_width():
    q, k, v, mask = randn(2, 3, 4), randn(2, 5, 4), randn(2, 5, 6), torch.rand(2, 3, 5) < 0.7
    mask[..., 0] = True
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(attend(q, k, v, mask)[0], theirs)


def test_two_equal_keys_share_the_weight_and_a_bias_moves_it():
    q, k, v = randn(1, 1, 4), torch.ones(1, 2, 4, dtype=torch.float64), randn(1, 2, 3)
    output, weights = attend(q, k, v)
    torch.testing.assert_close(weights, torch.full((1, 1, 2), 0.5, dtype=torch.float64))
    torch.testing.assert_close(output, v.mean(1, keepdim=True))
    _, moved = attend(q, k, v, bias=torch.tensor([[[0.0, math.log(3)]]], dtype=torch.float64))
    torch.testing.assert_close(moved[0, 0], torch.tensor([0.25, 0.75], dtype=torch.float64))


def test_the_unscaled_form_is_the_scaled_one_of_longer_queries():
    q, k, v = randn(2, 3, 4), randn(2, 5, 4), randn(2, 5, 6)
    torch.testing.assert_close(attend(q, k, v, scale=1.0)[0], attend(q * 2, k, v)[0])


def test_attention_without_parameters_is_a_plain_loop_over_the_inputs():
    x = randn(1, 3, 2)
    rows = x[0].tolist()
    for i, output in enumerate(attend(x, x, x, scale=1.0)[0][0].tolist()):
        scores = [math.exp(sum(a * b for a, b in zip(rows[i], row, strict=True))) for row in rows]
        for c in range(2):
            expected = sum(s * row[c] for s, row in zip(scores, rows, strict=True)) / sum(scores)
            assert output[c] == pytest.approx(expected)


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients():
    q, k, v = (randn(2, 3, 4).requires_grad_() for _ in range(3))
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    mask[1, 2] = False
    output, weights = attend(q, k, v, mask)
    assert output[1, 2].count_nonzero() == 0
    assert weights[1, 2].count_nonzero() == 0
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double())
    output.square().sum().backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


def test_permuting_keys_with_their_values_changes_nothing():
    q, k, v, order = randn(2, 3, 4), randn(2, 5, 4), randn(2, 5, 6), torch.randperm(5)
    torch.testing.assert_close(attend(q, k[:, order], v[:, order])[0], attend(q, k, v)[0])


def test_merging_heads_undoes_splitting_them():
    x = randn(2, 3, 8)
    torch.testing.assert_close(merge_heads(split_heads(x, 4)), x)


def by_head(x, y, weight, bias, heads):
    """One head at a time, each with its own slice of the packed projection."""
    wq, wk, wv = weight.chunk(3)
    bq, bk, bv = bias.chunk(3)
    results = []
    for i in range(heads):
        part = slice(i * len(wq) // heads, (i + 1) * len(wq) // heads)
        q, k, v = x @ wq[part].T + bq[part], y @ wk[part].T + bk[part], y @ wv[part].T + bv[part]
        results.append(attend(q, k, v)[0])
    return torch.cat(results, -1)


def test_packed_self_attention_is_one_head_after_another():
    layer, x = SelfAttention(6, 2, 5, Full(causal=False)).double(), randn(2, 3, 6)
    torch.nn.init.normal_(layer.packed.bias)
    ours, _ = layer(x, layer.begin(x), None, Relative())
    heads = by_head(x, x, layer.packed.weight, layer.packed.bias, heads=2)
    torch.testing.assert_close(ours, layer.output(heads))


def test_packed_cross_attention_is_one_head_after_another():
    layer, x, y = CrossAttention(6, 2, 5, Full(causal=False)).double(), randn(2, 3, 6), randn(2, 4, 6)
    torch.nn.init.normal_(layer.packed.bias)
    weight = torch.cat([layer.query.weight, layer.packed.weight])
    bias = torch.cat([layer.query.bias, layer.packed.bias])
    ours = layer(x, layer.remember(y), None)
    torch.testing.assert_close(ours, layer.output(by_head(x, y, weight, bias, heads=2)))


def test_self_attention_agrees_with_torch():
    ours = SelfAttention(6, 2, 3, Full(causal=False)).double()
    theirs = torch.nn.MultiheadAttention(6, 2, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.packed.weight)
        theirs.in_proj_bias.copy_(ours.packed.bias)
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    x, mask = randn(2, 4, 6), torch.tensor([[True] * 4, [True, True, False, False]])
    expected = theirs(x, x, x, key_padding_mask=~mask, need_weights=False)[0]
    torch.testing.assert_close(ours(x, ours.begin(x), mask, Relative())[0], expected)


def test_selecting_rows_of_a_cache_repeats_and_reorders_them():
    cache = KeyValues(randn(3, 2, 4, 5), randn(3, 2, 4, 6))
    chosen = cache.select(torch.tensor([2, 0, 2, 2]))
    torch.testing.assert_close(chosen.keys, torch.stack([cache.keys[i] for i in (2, 0, 2, 2)]))
    torch.testing.assert_close(chosen.values, torch.stack([cache.values[i] for i in (2, 0, 2, 2)]))


def test_without_biases_attention_is_that_of_biases_of_zero():
    x, y = randn(2, 3, 6), randn(2, 4, 6)
    for kind in (SelfAttention, CrossAttention):
        plain, full = (kind(6, 2, 5, Full(causal=False), bias=bias).double() for bias in (False, True))
        full.load_state_dict(plain.state_dict(), strict=False)  # whose own biases begin at zero
        ours, theirs = (
            layer(x, layer.begin(x), None, Relative())[0]
            if kind is SelfAttention
            else layer(x, layer.remember(y), None)
            for layer in (plain, full)
        )
        torch.testing.assert_close(ours, theirs)
        assert all(name.endswith("weight") for name in plain.state_dict())
