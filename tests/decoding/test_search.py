from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from toy_decoders import (
    BOS,
    EOS,
    KINDS,
    ToyState,
    every_finished,
    next_of,
    plain_beam_search,
    steps_of,
    toy,
    toy_memory,
)

from regard.decoding.options import SearchOptions
from regard.decoding.search import Adjust, Ban, attainable, beam_search
from regard.errors import DecodingError
from regard.models.interface import Decoder, State

ALPHAS = (0.0, 0.7, 1.0, -0.5)
kinds = pytest.mark.parametrize("kind", KINDS)


def search(decoder, memory, limits, **settings):
    prefix, adjust = settings.pop("prefix", None), settings.pop("adjust", ())
    options = SearchOptions(**settings)
    limits = torch.tensor(limits, dtype=torch.long)
    return beam_search(
        decoder, memory, max_lengths=limits, options=options, bos=BOS, eos=EOS, prefix=prefix, adjust=adjust
    )


def summary(found):
    return [[(h.tokens, round(h.score, 9), h.finished) for h in hypotheses] for hypotheses in found]


@kinds
def test_the_toys_keep_the_contract(kind):
    decoder, memory = toy(kind, vocab=3), toy_memory(2)
    assert isinstance(decoder, Decoder)
    assert isinstance(decoder.begin(memory), State)
    assert isinstance(Ban([0]), Adjust)


@kinds
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_wide_beam_is_exhaustive_search(kind, alpha):
    decoder, memory, limits = toy(kind, vocab=3), toy_memory(3), [5, 1, 4]
    found = search(decoder, memory, limits, beam=64, n_best=6, length_penalty=alpha)
    for row, limit in enumerate(limits):
        exact = every_finished(decoder, memory, row, vocab=3, limit=limit, alpha=alpha)[:6]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in exact]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in exact])
        assert all(h.finished for h in found[row])


@kinds
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("width", "n_best"), [(1, 1), (2, 1), (3, 2), (4, 4)])
def test_a_narrow_beam_agrees_with_a_plain_one_that_never_prunes(kind, alpha, width, n_best):
    for seed in range(2):
        decoder, memory, limits = toy(kind, vocab=6, seed=seed), toy_memory(4), [7, 2, 9, 5]
        found = search(decoder, memory, limits, beam=width, n_best=n_best, length_penalty=alpha)
        for row, limit in enumerate(limits):
            plain = plain_beam_search(decoder, memory, row, width=width, n_best=n_best, limit=limit, alpha=alpha)
            assert [h.tokens for h in found[row]] == [tokens for _, tokens in plain]
            assert [h.score for h in found[row]] == pytest.approx([score for score, _ in plain])


class Sure(nn.Module):
    """Writes 2, 3, 4, 5 and ends, with p ≈ 1; at each step before, an ending is the second best of all tokens."""

    def begin(self, memory):
        return ToyState(memory.values.new_zeros(len(memory.values), 0), memory)

    def features(self, tokens, state):
        past = torch.cat([state.past, tokens.double()], 1)
        return past[:, -1:, None], replace(state, past=past)

    def output(self, features):
        next_token = {BOS: 2, 2: 3, 3: 4, 4: 5, 5: EOS}
        logits = torch.zeros(len(features), 6, dtype=torch.float64)
        logits[:, EOS] = 3.0
        for row, last in enumerate(features[:, 0].tolist()):
            logits[row, next_token[int(last)]] = 9.0
        return logits

    def forward(self, tokens, state):
        features, state = self.features(tokens, state)
        return self.output(features[:, -1])[:, None], state


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_poor_endings_do_not_cut_off_a_better_hypothesis(alpha):
    # Greedy finds the answer; two early endings, each e⁶ times less likely, must not make a beam of two miss it.
    for width in (1, 2, 3):
        ((best,),) = search(Sure(), toy_memory(1), [9], beam=width, length_penalty=alpha)
        assert best.tokens == (2, 3, 4, 5)


def test_patience_counts_the_endings_that_are_waited_for():
    # Each step but the last finds one poor ending; the fifth is the answer.
    for patience, answer in ((1.0, False), (2.0, False), (2.5, True)):
        ((best,),) = search(Sure(), toy_memory(1), [9], beam=2, length_penalty=0.0, patience=patience)
        assert (best.tokens == (2, 3, 4, 5)) is answer


@kinds
def test_width_one_is_the_argmax_loop(kind):
    decoder, memory, limits = toy(kind, vocab=9, seed=3), toy_memory(5), [4, 8, 8, 2, 12]
    for row, (best,) in enumerate(search(decoder, memory, limits, beam=1)):
        tokens = []
        while len(tokens) < limits[row] and (not tokens or tokens[-1] != EOS):
            values = next_of(decoder, memory, row, tokens)
            tokens.append(values.index(max(values)))
        assert best.finished == (tokens[-1] == EOS)
        assert list(best.tokens) == [token for token in tokens if token != EOS]


@kinds
def test_a_batch_of_many_equals_one_by_one(kind):
    decoder, memory, limits = toy(kind, vocab=7, seed=2), toy_memory(5), [3, 9, 1, 6, 5]
    together = search(decoder, memory, limits, beam=3, n_best=3)
    alone = [
        search(decoder, memory.select(torch.tensor([row])), [limit], beam=3, n_best=3)[0]
        for row, limit in enumerate(limits)
    ]
    assert summary(together) == summary(alone)


@kinds
def test_permuting_rows_permutes_results(kind):
    decoder, memory, limits, order = toy(kind, vocab=7, seed=4), toy_memory(4), [3, 9, 6, 5], [2, 0, 3, 1]
    straight = search(decoder, memory, limits, beam=3, n_best=2)
    permuted = search(decoder, memory.select(torch.tensor(order)), [limits[i] for i in order], beam=3, n_best=2)
    assert summary(permuted) == [summary(straight)[i] for i in order]


@kinds
def test_the_n_best_are_sorted_and_distinct(kind):
    for hypotheses in search(toy(kind, vocab=3), toy_memory(3), [6, 6, 6], beam=8, n_best=8):
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({h.tokens for h in hypotheses}) == len(hypotheses) > 1


@kinds
def test_token_log_probs_are_those_of_a_teacher_forced_pass(kind):
    decoder, memory = toy(kind, vocab=6, seed=1), toy_memory(3)
    for row, hypotheses in enumerate(search(decoder, memory, [3, 8, 5], beam=4, n_best=4, length_penalty=0.6)):
        for h in hypotheses:
            steps = steps_of(decoder, memory, row, [*h.tokens, EOS] if h.finished else list(h.tokens))
            assert h.token_log_probs == pytest.approx(steps)
            assert h.log_probability == pytest.approx(sum(steps))
            assert h.score == pytest.approx(sum(steps) / len(steps) ** 0.6)


@kinds
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_forced_prefix_is_kept_and_its_best_continuation_found(kind, alpha):
    decoder, memory, limits = toy(kind, vocab=3, seed=5), toy_memory(3), [5, 5, 4]
    prefix = [[2, 0, 2], [], [0]]
    found = search(decoder, memory, limits, beam=64, n_best=2, length_penalty=alpha, prefix=prefix)
    for row, limit in enumerate(limits):
        exact = every_finished(decoder, memory, row, vocab=3, limit=limit, alpha=alpha, prefix=prefix[row])[:2]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in exact]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in exact])


@pytest.mark.parametrize(("vocab", "beam"), [(65, 1), (387, 2), (1000, 5)])
def test_the_last_token_of_a_vocabulary_of_any_size_can_be_forced(vocab, beam):
    decoder, memory, last = toy("recurrent", vocab=vocab), toy_memory(2), vocab - 1
    found = search(decoder, memory, [5, 4], beam=beam, n_best=beam, prefix=[[last, last], [last]])
    for row, (prefix, hypotheses) in enumerate(zip([(last, last), (last,)], found, strict=True)):
        for h in hypotheses:
            assert h.tokens[: len(prefix)] == prefix
            steps = steps_of(decoder, memory, row, [*h.tokens, EOS] if h.finished else list(h.tokens))
            assert h.token_log_probs == pytest.approx(steps)


def test_empty_prefixes_change_nothing():
    decoder, memory = toy("caching", vocab=6), toy_memory(2)
    assert summary(search(decoder, memory, [5, 7], prefix=[[], []])) == summary(search(decoder, memory, [5, 7]))


def test_a_forced_token_is_kept_even_where_it_is_banned():
    decoder, memory = toy("recurrent", vocab=5), toy_memory(2)
    found = search(decoder, memory, [6, 6], prefix=[[4, 2], []], adjust=(Ban([4]),))
    assert found[0][0].tokens[:2] == (4, 2)
    assert 4 not in found[0][0].tokens[2:] + found[1][0].tokens


@kinds
def test_banning_is_exhaustive_search_over_what_is_left(kind):
    decoder, memory = toy(kind, vocab=4, seed=2), toy_memory(2)
    found = search(decoder, memory, [4, 3], beam=64, n_best=3, adjust=(Ban([2]),))
    for row, limit in enumerate([4, 3]):
        everything = every_finished(decoder, memory, row, vocab=4, limit=limit, alpha=1.0)
        allowed = [tokens for _, tokens in everything if 2 not in tokens][:3]
        assert [h.tokens for h in found[row]] == allowed


def test_adjust_sees_the_tokens_so_far_and_the_sentence_of_each_row():
    decoder, memory, seen = toy("windowed", vocab=5), toy_memory(3), []

    def never_twice(log_probs, tokens, sentences):
        seen.append((tokens.shape, set(sentences.tolist())))
        log_probs = log_probs.index_fill(1, torch.tensor([EOS]), -20.0)
        return log_probs.scatter(1, tokens, -torch.inf) if tokens.shape[1] else log_probs

    found = search(decoder, memory, [5, 5, 5], beam=2, adjust=(never_twice,))
    assert seen[0] == ((3, 0), {0, 1, 2})
    assert all(shape[1] == step for step, (shape, _) in enumerate(seen))
    assert all(sorted(h.tokens) == [0, 2, 3, 4] for hypotheses in found for h in hypotheses)


def test_finished_sentences_leave_the_batch():
    decoder, memory, rows = toy("caching", vocab=6), toy_memory(3), []
    inner = decoder.features

    def features(tokens, state):
        rows.append(len(tokens))
        return inner(tokens, state)

    decoder.features = features
    search(decoder, memory, [1, 3, 6], beam=1, adjust=(Ban([EOS]),))
    assert rows == [3, 2, 2, 1, 1, 1]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_few_finished_sentences_stay_and_change_nothing(beam):
    """1 of 20 stays and 6 of 20 leave; whoever is beside it, each sentence is searched as if alone."""
    decoder, memory, rows = toy("caching", vocab=6, seed=1), toy_memory(20), []
    limits, inner = [5, 1, 5, 4, 2, 2, 5, 2, 5, 2, 5, 2] + 8 * [5], decoder.features

    def features(tokens, state):
        rows.append(len(tokens))
        return inner(tokens, state)

    settings = {"beam": beam, "n_best": beam, "adjust": (Ban([EOS]),)}
    decoder.features = features
    together = search(decoder, memory, limits, **settings)
    assert rows == [20, *(beam * n for n in (20, 14, 14, 14))]
    for row, (limit, ours) in enumerate(zip(limits, together, strict=True)):
        assert summary([ours]) == summary(search(decoder, memory.select(torch.tensor([row])), [limit], **settings))
        assert [len(h.tokens) for h in ours] == beam * [limit]


def test_a_sentence_stops_once_its_best_cannot_be_beaten():
    class Certain:
        """Puts nearly all mass on the end token, and counts how often it is asked."""

        def __init__(self):
            self.calls = 0

        def begin(self, memory):
            return memory

        def features(self, tokens, state):
            self.calls += 1
            return torch.zeros(len(tokens), 1, 1), state

        def output(self, features):
            return torch.tensor([0.0, 50.0, 0.0, 0.0]).expand(*features.shape[:-1], 4)

        def __call__(self, tokens, state):
            features, state = self.features(tokens, state)
            return self.output(features), state

    for alpha in ALPHAS:
        decoder = Certain()
        ((best,),) = search(decoder, toy_memory(1), [30], beam=4, length_penalty=alpha)
        assert best.tokens == ()
        assert decoder.calls == 1


@pytest.mark.parametrize("alpha", ALPHAS)
def test_attainable_is_the_best_over_every_length_to_come(alpha):
    best, limits = torch.tensor([-0.3, -4.0, -2.0], dtype=torch.float64), torch.tensor([9, 5, 4])
    slow = [max(b / length**alpha for length in range(4, m + 1)) for b, m in zip(best.tolist(), [9, 5, 4], strict=True)]
    assert attainable(best, 3, limits, alpha).tolist() == pytest.approx(slow)


def test_a_cut_hypothesis_is_returned_only_where_none_finished():
    decoder, memory = toy("recurrent", vocab=6, seed=1), toy_memory(2)
    cut = search(decoder, memory, [4, 3], beam=3, n_best=3, adjust=(Ban([EOS]),))
    assert [[len(h.tokens) for h in hypotheses] for hypotheses in cut] == [[4, 4, 4], [3, 3, 3]]
    assert not any(h.finished for hypotheses in cut for h in hypotheses)
    mixed = search(decoder, memory, [4, 3], beam=64, n_best=64)
    assert all(h.finished for hypotheses in mixed for h in hypotheses)


def test_no_sentences_give_no_hypotheses():
    assert search(toy("recurrent", vocab=4), toy_memory(0), [], beam=2) == []


def test_forbidding_every_token_is_refused():
    with pytest.raises(DecodingError, match="sentence 0: no token has a finite"):
        search(toy("recurrent", vocab=4), toy_memory(2), [3, 3], adjust=(Ban([0, 1, 2, 3]),))


def test_weights_that_are_not_finite_are_refused():
    decoder = toy("recurrent", vocab=4)
    torch.nn.init.constant_(decoder.out.bias, torch.nan)
    with pytest.raises(DecodingError, match="weights are not finite"):
        search(decoder, toy_memory(2), [3, 3])


@pytest.mark.parametrize(
    ("limits", "prefix", "message"),
    [
        ([3], None, "1 lengths for 2 sentences"),
        ([3, 0], None, "found 0"),
        ([3, 3], [[2]], "1 prefixes for 2 sentences"),
        ([3, 3], [[2], [2, 2, 2]], "sentence 1: 3 tokens leave no room below the maximum length 3"),
        ([3, 3], [[EOS], []], "sentence 0: .* end token"),
        ([3, 3], [[], [-1]], "sentence 1: .* negative"),
    ],
)
def test_impossible_requests_are_refused(limits, prefix, message):
    with pytest.raises(DecodingError, match=message):
        search(toy("recurrent", vocab=4), toy_memory(2), limits, prefix=prefix)


def test_max_length_worked_by_hand():
    options = SearchOptions(max_ratio=1.5, max_extra=3, cap=12)
    assert [options.max_length(source) for source in (0, 1, 3, 100)] == [3, 4, 7, 12]
    assert SearchOptions(max_ratio=0, max_extra=0).max_length(9) == 1


@pytest.mark.parametrize(
    "settings", [{"beam": 0}, {"beam": 65}, {"n_best": 6}, {"length_penalty": float("nan")}, {"width": 3}]
)
def test_impossible_options_are_refused(settings):
    with pytest.raises(ValidationError):
        SearchOptions(**settings)
