import math

import pytest
import torch
from torch import nn

from regard.layers.scores import (
    Additive,
    Attention,
    CoveredAttention,
    Dot,
    General,
    Projected,
    ScaledDot,
    Unattended,
    additive_scores,
    distribute,
    dot_scores,
    general_scores,
    scaled_dot_scores,
)

N, Q, K, D, E, A = 2, 3, 5, 4, 6, 7


def random(*sizes):
    return torch.randn(*sizes, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(5)


def attentions():
    """Every kind, with the width of memory it reads."""
    return {
        "dot": (Attention(Dot(), nn.Identity()), D),
        "scaled-dot": (Attention(ScaledDot(), nn.Identity()), D),
        "general": (Attention(General(D, E), nn.Identity()), E),
        "additive": (Attention(Additive(D, E, A), nn.Identity()), E),
        "parameterised": (Attention(Projected(D, E, A), nn.Linear(E, A, bias=False)), E),
        "covered": (CoveredAttention(Additive(D, E, A), A), E),
    }


@pytest.fixture(params=sorted(attentions()))
def attention(request):
    """An attention module, queries, and a memory whose second row shows three of its five positions."""
    module, width = attentions()[request.param]
    return module.double(), random(N, Q, D), random(N, K, width), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def test_every_score_is_its_formula_pair_by_pair():
    q, k, wide = random(N, Q, D), random(N, K, D), random(N, K, E)
    w, v, wq, uk = random(D, E), random(A), random(N, Q, A), random(N, K, A)
    dot, scaled = dot_scores(q, k), scaled_dot_scores(q, k)
    general, additive = general_scores(q, wide, w), additive_scores(wq, uk, v)
    for n in range(N):
        for i in range(Q):
            for j in range(K):
                product = sum(float(q[n, i, d] * k[n, j, d]) for d in range(D))
                assert float(dot[n, i, j]) == pytest.approx(product)
                assert float(scaled[n, i, j]) == pytest.approx(product / math.sqrt(D))
                middle = sum(float(q[n, i, d] * w[d, e] * wide[n, j, e]) for d in range(D) for e in range(E))
                assert float(general[n, i, j]) == pytest.approx(middle)
                summed = sum(float(v[a]) * math.tanh(float(wq[n, i, a] + uk[n, j, a])) for a in range(A))
                assert float(additive[n, i, j]) == pytest.approx(summed)


def test_modules_agree_with_the_pure_functions():
    q, memory = random(N, Q, D), random(N, K, E)
    general, additive = General(D, E).double(), Additive(D, E, A).double()
    torch.testing.assert_close(general(q, general.keys(memory)), general_scores(q, memory, general.key.weight))
    wq = q @ additive.query.weight.mT + additive.query.bias
    torch.testing.assert_close(
        additive(q, additive.keys(memory)), additive_scores(wq, memory @ additive.key.weight.mT, additive.v)
    )
    projected = Projected(D, E, A).double()
    between = projected.query.weight.mT @ projected.key.weight  # (W^k k)ᵀ(W^q q) = qᵀ (W^qᵀ W^k) k
    torch.testing.assert_close(projected(q, projected.keys(memory)), general_scores(q, memory, between))


def test_scaled_dot_attention_agrees_with_torch():
    q, memory, mask = random(N, Q, D), random(N, K, D), torch.tensor([[True] * 5, [True, False, True, True, False]])
    module = Attention(ScaledDot(), nn.Identity())
    theirs = nn.functional.scaled_dot_product_attention(q, memory, memory, attn_mask=mask[:, None])
    torch.testing.assert_close(module(q, module.prepare(memory, mask))[0], theirs)


def test_a_distribution_sums_to_one_over_what_is_visible():
    scores, mask = random(N, Q, K), torch.tensor([[True, False, True, True, False], [False] * 5])
    weights = distribute(scores, mask)
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(Q, dtype=torch.float64))
    torch.testing.assert_close(weights[0][:, mask[0]], scores[0][:, mask[0]].softmax(-1))
    assert (weights[0][:, ~mask[0]] == 0).all()
    assert (weights[1] == 0).all()


def test_a_row_that_sees_nothing_reads_zeros_and_has_finite_gradients(attention):
    module, q, memory, mask = attention
    memory.requires_grad_()
    blind = torch.zeros_like(mask)
    blind[0] = mask[0]
    read, _ = module(q, module.prepare(memory, blind))
    read.square().sum().backward()
    assert (read[1] == 0).all()
    assert memory.grad.isfinite().all()
    assert (memory.grad[1] == 0).all()


def test_what_is_read_is_the_values_under_the_weights(attention):
    module, q, memory, mask = attention
    source = module.prepare(memory, mask)
    read, _ = module(q, source)
    torch.testing.assert_close(read, module.weights(q, source)[:, 0] @ source.values)
    torch.testing.assert_close(module.weights(q, source).sum(-1), torch.ones(N, 1, Q, dtype=torch.float64))


def test_hidden_memory_is_invisible(attention):
    module, q, memory, mask = attention
    poisoned = memory.masked_fill(~mask[..., None], 1e3)
    ours, _ = module(q, module.prepare(poisoned, mask))
    torch.testing.assert_close(ours, module(q, module.prepare(memory, mask))[0], atol=0, rtol=0)


def test_queries_one_by_one_equal_queries_at_once(attention):
    module, q, memory, mask = attention
    whole, end = module(q, module.prepare(memory, mask))
    source, steps = module.prepare(memory, mask), []
    for query in q.split(1, dim=1):
        step, source = module(query, source)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)
    torch.testing.assert_close(source.past, end.past)


def test_selecting_rows_commutes_with_reading(attention):
    module, q, memory, mask = attention
    rows = torch.tensor([1, 1, 0])
    source = module(q, module.prepare(memory, mask))[1]
    torch.testing.assert_close(module(q[rows], source.select(rows))[0], module(q, source)[0][rows])


def test_coverage_is_the_sum_of_the_weights_so_far_and_enters_the_score():
    module, q, memory = CoveredAttention(Additive(D, E, A), A).double(), random(1, 2, D), random(1, K, E)
    source = module.prepare(memory, torch.ones(1, K, dtype=torch.bool))
    wq = module.score.query(q)
    uk = module.score.keys(memory)
    first = additive_scores(wq[:, :1], uk, module.score.v).softmax(-1)
    second = additive_scores(wq[:, 1:], uk + first.mT * module.w, module.score.v).softmax(-1)
    torch.testing.assert_close(module.weights(q, source)[:, 0], torch.cat([first, second], dim=1))
    torch.testing.assert_close(module(q, source)[1].past, (first + second)[:, 0])


def test_a_covered_place_loses_weight_when_coverage_counts_against_it():
    module = CoveredAttention(Additive(D, E, A), A).double()
    with torch.no_grad():
        module.w.copy_(-100 * module.score.v.sign())  # vᵀ tanh(… − c·|big|·sign v) falls as c grows
    q, memory = random(1, 1, D).expand(1, 2, D), random(1, K, E)
    weights = module.weights(q, module.prepare(memory, torch.ones(1, K, dtype=torch.bool)))[0, 0]
    favourite = int(weights[0].argmax())
    plain = module.score(q[:, :1], module.score.keys(memory)).softmax(-1)[0, 0]
    torch.testing.assert_close(weights[0], plain)
    assert weights[1, favourite] < weights[0, favourite]


def test_without_attention_nothing_is_read():
    module, q, memory = Unattended(), random(N, Q, D), random(N, K, E)
    source = module.prepare(memory, torch.ones(N, K, dtype=torch.bool))
    read, after = module(q, source)
    assert read.numel() == 0
    assert after is source
    assert not hasattr(module, "weights")
