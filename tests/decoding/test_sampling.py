import math
from collections import Counter

import pytest
import torch
from pydantic import ValidationError
from toy_decoders import BOS, EOS, KINDS, every_finished, steps_of, toy, toy_memory

from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.sampling import draw, keep_top_k, keep_top_p, sample, warp
from regard.decoding.search import Ban, beam_search
from regard.errors import DecodingError

kinds = pytest.mark.parametrize("kind", KINDS)
LOGITS = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.25, 0.05, 0.65, 0.05]], dtype=torch.float64).log()


def drawn(decoder, memory, limits, *, seed=0, adjust=(), **settings):
    return sample(
        decoder,
        memory,
        max_lengths=torch.tensor(limits, dtype=torch.long),
        options=SamplingOptions(**settings),
        bos=BOS,
        eos=EOS,
        generator=torch.Generator().manual_seed(seed),
        adjust=adjust,
    )


def kept(logits):
    return [row.isfinite().nonzero().flatten().tolist() for row in logits]


def test_top_k_keeps_the_k_likeliest_worked_by_hand():
    assert kept(keep_top_k(LOGITS, 2)) == [[1, 3], [0, 2]]
    assert kept(keep_top_k(LOGITS, 1)) == [[1], [2]]


def test_top_k_keeps_exactly_k_of_equals():
    assert [len(row) for row in kept(keep_top_k(torch.zeros(2, 5), 3))] == [3, 3]


def test_top_p_keeps_the_smallest_set_that_reaches_p_worked_by_hand():
    assert kept(keep_top_p(LOGITS, 0.6)) == [[1, 3], [2]]  # 0.4 + 0.3 and 0.65
    assert kept(keep_top_p(LOGITS, 0.75)) == [[1, 2, 3], [0, 2]]
    assert kept(keep_top_p(LOGITS, 1e-9)) == [[1], [2]]


def test_top_p_agrees_with_a_plain_loop():
    logits = torch.randn(7, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2
    for p in (0.1, 0.5, 0.9, 0.99):
        for row, ours in zip(logits.softmax(-1).tolist(), kept(keep_top_p(logits, p)), strict=True):
            chosen, mass = [], 0.0
            for token in sorted(range(len(row)), key=lambda i: -row[i]):
                if mass < p:
                    chosen.append(token)
                mass += row[token]
            assert ours == sorted(chosen)


def test_off_means_untouched():
    assert torch.equal(keep_top_k(LOGITS, 0), LOGITS)
    assert torch.equal(keep_top_k(LOGITS, 9), LOGITS)
    assert torch.equal(keep_top_p(LOGITS, 1.0), LOGITS)


def test_what_is_kept_keeps_its_value():
    for changed in (keep_top_k(LOGITS, 2), keep_top_p(LOGITS, 0.7)):
        inside = changed.isfinite()
        assert torch.equal(changed[inside], LOGITS[inside])


def test_temperature_raises_probabilities_to_a_power():
    p = LOGITS.exp()
    sharp = warp(LOGITS, SamplingOptions(temperature=0.5)).softmax(-1)
    assert torch.allclose(sharp, p**2 / (p**2).sum(-1, keepdim=True))


def test_top_p_counts_the_mass_that_top_k_left():
    # 0.4 and 0.3 are 57 % and 43 % of what is left of the first row, 0.65 and 0.25 are 72 % and 28 % of the second.
    assert kept(warp(LOGITS, SamplingOptions(top_k=2, top_p=0.6))) == [[1, 3], [2]]
    assert kept(warp(LOGITS, SamplingOptions(top_k=2, top_p=0.55))) == [[1], [2]]


def within_chance(counts, probabilities, draws):
    """Σ (count − expected)² / expected, against a bound that chance exceeds about once in 10⁵ runs."""
    statistic = sum((counts[key] - draws * p) ** 2 / (draws * p) for key, p in probabilities.items())
    freedom = len(probabilities) - 1
    return statistic < freedom + 4.3 * math.sqrt(2 * freedom) + 12


def test_draws_follow_the_softmax():
    draws = 4000
    tokens = draw(LOGITS[:1].expand(draws, -1), torch.Generator().manual_seed(0))
    assert within_chance(Counter(tokens.flatten().tolist()), dict(enumerate([0.1, 0.4, 0.2, 0.3])), draws)
    assert not within_chance(Counter(tokens.flatten().tolist()), dict(enumerate([0.2, 0.3, 0.2, 0.3])), draws)


@kinds
def test_sequences_are_drawn_with_their_probability(kind):
    decoder, memory, draws = toy(kind, vocab=3), toy_memory(2), 800
    for row, hypotheses in enumerate(drawn(decoder, memory, [3, 3], samples=draws)):
        exact = {
            tokens: math.exp(score)
            for score, tokens in every_finished(decoder, memory, row, vocab=3, limit=3, alpha=0.0)
        }
        exact["cut"] = 1 - sum(exact.values())
        exact = {key: p for key, p in exact.items() if p * draws > 5}
        counts = Counter(h.tokens if h.finished else "cut" for h in hypotheses)
        assert len(hypotheses) == draws
        assert within_chance(counts, exact, draws)


@kinds
def test_top_k_one_is_greedy(kind):
    decoder, memory, limits = toy(kind, vocab=8, seed=2), toy_memory(4), [9, 2, 5, 7]
    greedy = beam_search(
        decoder, memory, max_lengths=torch.tensor(limits), options=SearchOptions(beam=1), bos=BOS, eos=EOS
    )
    for (best,), hypotheses in zip(greedy, drawn(decoder, memory, limits, top_k=1, samples=2), strict=True):
        assert [(h.tokens, h.finished) for h in hypotheses] == 2 * [(best.tokens, best.finished)]
        assert hypotheses[0].token_log_probs == pytest.approx(best.token_log_probs)


@kinds
def test_reported_log_probs_are_the_models_own_whatever_the_temperature(kind):
    decoder, memory = toy(kind, vocab=5), toy_memory(3)
    for row, hypotheses in enumerate(drawn(decoder, memory, [4, 6, 5], temperature=2.0, top_k=4, samples=3)):
        for h in hypotheses:
            steps = steps_of(decoder, memory, row, [*h.tokens, EOS] if h.finished else list(h.tokens))
            assert h.token_log_probs == pytest.approx(steps)
            assert h.score == h.log_probability == pytest.approx(sum(steps))


def test_the_same_seed_draws_the_same():
    decoder, memory = toy("recurrent", vocab=6), toy_memory(3)
    first, again, other = (drawn(decoder, memory, [9, 9, 9], samples=4, seed=seed) for seed in (5, 5, 6))
    assert first == again != other


def test_banned_tokens_are_never_drawn():
    found = drawn(toy("caching", vocab=5), toy_memory(2), [6, 6], samples=50, adjust=(Ban([0, 3]),))
    assert {token for hypotheses in found for h in hypotheses for token in h.tokens} == {2, 4}


def test_no_sentences_give_no_samples():
    assert drawn(toy("recurrent", vocab=4), toy_memory(0), [], samples=3) == []


def test_forbidding_every_token_is_refused_when_sampling():
    with pytest.raises(DecodingError, match="no token has a finite probability"):
        drawn(toy("recurrent", vocab=3), toy_memory(1), [3], adjust=(Ban([0, 1, 2]),))


@pytest.mark.parametrize("settings", [{"temperature": 0}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.1}, {"samples": 0}])
def test_impossible_sampling_options_are_refused(settings):
    with pytest.raises(ValidationError):
        SamplingOptions(**settings)
