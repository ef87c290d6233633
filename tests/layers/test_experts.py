"""A mixture of experts against all experts computed densely, and its balance worked out by hand."""

import math

import pytest
import torch
from torch import nn

from regard.layers.experts import Gate, Gating, MixtureOfExperts, choose, importance, load, mix, squared_variation
from regard.layers.feedforward import FeedForward
from regard.models.penalties import penalties

ROWS, WIDTH, EXPERTS, ACTIVE = 11, 5, 4, 2


def mixture(balance=0.1):
    torch.manual_seed(1)
    gate = Gate(WIDTH, EXPERTS, ACTIVE, balance)
    nn.init.normal_(gate.score.weight)
    nn.init.normal_(gate.noise.weight)
    experts = [FeedForward(WIDTH, 3 + number, torch.relu) for number in range(EXPERTS)]
    return MixtureOfExperts(gate, experts).double()


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(9))


def gating(scores, noisy, spread, active=1):
    scores, noisy, spread = (torch.tensor(x, dtype=torch.float64) for x in (scores, noisy, spread))
    return Gating(scores, spread, noisy, *choose(noisy, active))


@torch.no_grad()
def test_a_mixture_is_the_weighted_sum_over_the_best_experts_of_each_row():
    layer, x = mixture().eval(), draw(2, ROWS, WIDTH)
    expected = torch.zeros_like(x)
    for place in torch.cartesian_prod(torch.arange(2), torch.arange(ROWS)).tolist():
        row = x[tuple(place)]
        scores = [((layer.gate.score.weight[e] @ row).item(), e) for e in range(EXPERTS)]
        best = sorted(scores, reverse=True)[:ACTIVE]
        total = sum(math.exp(score) for score, _ in best)
        expected[tuple(place)] = sum(math.exp(score) / total * layer.experts[e](row) for score, e in best)
    torch.testing.assert_close(layer(x), expected)


def test_experts_that_nobody_chose_are_no_trouble():
    x, chosen = draw(3, WIDTH), torch.tensor([[2], [0], [2]])
    experts = [lambda x, factor=factor: factor * x for factor in (1.0, 10.0, 100.0)]
    mixed = mix(x, chosen, torch.ones(3, 1, dtype=torch.float64), experts)
    torch.testing.assert_close(mixed, x * torch.tensor([[100.0], [1.0], [100.0]], dtype=torch.float64))


def test_gradients_of_a_mixture_are_those_of_the_dense_sum():
    layer, x = mixture().eval(), draw(ROWS, WIDTH)
    scores = layer.gate.score(x)
    dense = torch.stack([expert(x) for expert in layer.experts], 1)
    lowest = scores.topk(ACTIVE).values[:, -1:]
    weights = scores.masked_fill(scores < lowest, -math.inf).softmax(-1)
    weigh, trained = draw(ROWS, WIDTH), [*layer.experts.parameters(), layer.gate.score.weight]
    theirs = torch.autograd.grad(((weights[..., None] * dense).sum(1) * weigh).sum(), trained)
    ours = torch.autograd.grad((layer(x) * weigh).sum(), trained)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_noise_is_drawn_in_training_only():
    gate, x = mixture().gate, draw(ROWS, WIDTH)
    assert not torch.equal(gate.train()(x).noisy, gate(x).noisy)
    plain = gate.eval()(x)
    assert torch.equal(plain.noisy, plain.scores)


def test_noise_comes_from_the_generator_that_the_gate_was_given():
    gate, x = mixture().gate.train(), draw(ROWS, WIDTH)
    gate.generator = torch.Generator()
    drawn = [gate(x).noisy for seed in (5, 5, 6) if gate.generator.manual_seed(seed)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_a_gate_that_wants_no_noise_still_has_gradients():
    gate = Gate(2, EXPERTS, ACTIVE, balance=1.0).double().train()
    torch.nn.init.constant_(gate.noise.weight, -30.0)
    x = torch.ones(7, 2, dtype=torch.float64)
    gate.penalty(gate(x)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in gate.parameters())


def test_noise_has_the_spread_that_the_gate_says():
    gate, x = mixture().gate.train(), draw(1, WIDTH).expand(20_000, WIDTH)
    torch.manual_seed(2)
    found = gate(x)
    torch.testing.assert_close(found.noisy.std(0), found.spread[0], rtol=0.03, atol=0)
    torch.testing.assert_close(found.noisy.mean(0), found.scores[0], rtol=0.03, atol=0.03)


def test_a_fresh_gate_prefers_nobody():
    torch.manual_seed(3)
    found = Gate(WIDTH, EXPERTS, ACTIVE, 0.1).double().train()(draw(4000, WIDTH))
    counts = found.chosen.flatten().bincount(minlength=EXPERTS)
    assert ((counts - 2000).abs() < 150).all()  # 2000 each, give or take five standard deviations


def test_importance_adds_up_weights_by_hand():
    found = gating([[0.0, 1.0, 2.0], [3.0, 3.0, -9.0]], [[0.0, 1.0, 2.0], [3.0, 3.0, -9.0]], [[1.0] * 3] * 2, active=2)
    better = 1 / (1 + math.exp(-1))
    assert importance(found).tolist() == pytest.approx([0.5, 1 - better + 0.5, better])


def test_load_is_the_chance_to_be_chosen_by_hand():
    """One of three: whoever leads must stay above the second, the others must come above the first."""

    def phi(z):
        return (1 + math.erf(z / math.sqrt(2))) / 2

    found = gating([[0.5, 2.0, 1.0]], [[0.0, 3.0, 1.5]], [[1.0, 2.0, 0.5]])
    expected = [phi((0.5 - 3.0) / 1.0), phi((2.0 - 1.5) / 2.0), phi((1.0 - 3.0) / 0.5)]
    assert load(found).tolist() == pytest.approx(expected)


def test_load_is_how_often_an_expert_is_chosen_when_its_noise_is_drawn_again():
    scores, spread = draw(EXPERTS), draw(EXPERTS).exp()
    generator = torch.Generator().manual_seed(4)
    noisy = scores + spread * torch.randn(EXPERTS, dtype=torch.float64, generator=generator)
    expected = load(Gating(scores[None], spread[None], noisy[None], *choose(noisy[None], ACTIVE)))
    for expert in range(EXPERTS):
        again = noisy.repeat(20_000, 1)
        again[:, expert] = scores[expert] + spread[expert] * torch.randn(
            20_000, dtype=torch.float64, generator=generator
        )
        share = (again.topk(ACTIVE).indices == expert).any(-1).double().mean()
        assert share.item() == pytest.approx(expected[expert].item(), abs=0.02)


def test_variation_by_hand_and_of_equal_shares():
    assert squared_variation(torch.tensor([1.0, 3.0])).item() == pytest.approx(1 / 4)  # variance 1, mean 2
    assert squared_variation(torch.tensor([7.0, 7.0, 7.0])).item() == 0


def test_the_penalty_pushes_towards_balance():
    torch.manual_seed(5)
    layer, x = mixture().train(), draw(200, WIDTH)
    layer.gate.score.weight.data *= 3
    rate, before = 0.05, None
    for _ in range(60):
        penalty = layer.gate.penalty(layer.gate(x))
        before = before or penalty.item()
        gradients = torch.autograd.grad(penalty, list(layer.gate.parameters()))
        for p, g in zip(layer.gate.parameters(), gradients, strict=True):
            p.data -= rate * g / g.norm()
    assert layer.gate.penalty(layer.gate(x)).item() < before / 3


def test_penalties_are_collected_once_for_each_call_and_only_inside_the_block():
    first, second, x = mixture(0.1), mixture(0.2), draw(ROWS, WIDTH)
    model = nn.Sequential(first.eval(), nn.Tanh(), second.eval())
    with penalties(model) as found:
        model(x)
        model(x)
    model(x)
    inner = model[:2](x)
    expected = [first.gate.penalty(first.gate(x)), second.gate.penalty(second.gate(inner))]
    torch.testing.assert_close(torch.stack(found), torch.stack(expected * 2))
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_without_penalties_has_none():
    with penalties(nn.Linear(2, 2)) as found:
        pass
    assert found == []
