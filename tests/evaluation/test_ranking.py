"""Strengths are where the likelihood is highest, intervals are Jeffreys' where that can be worked out."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError
from regard.evaluation.judgements import Judgement, Output
from regard.evaluation.ranking import closure, draw, rank, strengths, tally, with_prior


def judged(sentence, left, right, verdict, judge=""):
    """Sides are names of systems; what they wrote does not matter here."""
    sides = (Output(tuple(side.split("+")), f"text of {side}") for side in (left, right))
    return Judgement(sentence, "source", *sides, verdict, judge)


def log_likelihood(wins, theta):
    """Σ wᵢⱼ log σ(θᵢ - θⱼ), as a plain loop."""
    k = len(theta)
    return sum(-wins[i][j] * math.log1p(math.exp(theta[j] - theta[i])) for i in range(k) for j in range(k) if i != j)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.sampled_from([1, 40, 3000]))
def test_strengths_are_where_the_likelihood_is_flat_and_highest(k, seed, games):
    rng = np.random.default_rng(seed)
    wins = with_prior(rng.integers(0, games + 1, (k, k)) * (rng.random((k, k)) < 0.6).astype(float), 0.5)
    found = strengths(wins)
    assert found.sum() == pytest.approx(0, abs=1e-9)
    best = log_likelihood(wins, found)
    for i in range(k):
        step = np.eye(k)[i] * 1e-4
        up, down = log_likelihood(wins, found + step), log_likelihood(wins, found - step)
        assert up < best
        assert down < best
        assert (up - down) / 2e-4 == pytest.approx(0, abs=1e-5 * wins.sum())


def test_for_two_systems_the_difference_is_the_log_odds_of_wins():
    wins = np.array([[0.0, 7.5], [2.5, 0.0]])  # 6 won, 1 lost, 3 equal
    one, other = strengths(wins)
    assert one - other == pytest.approx(math.log(7.5 / 2.5))
    judgements = [judged(i, "a", "b", "left") for i in range(1, 7)]
    judgements += [judged(7, "b", "a", "left"), *(judged(i, "a", "b", "equal") for i in (8, 9, 10))]
    first, second = rank(judgements).places
    assert (first.system, first.better, first.equal, first.worse) == ("a", 6, 3, 1)
    assert first.preferred == 75
    assert first.strength - second.strength == pytest.approx(math.log((7.5 + 0.5) / (2.5 + 0.5)))


def test_a_batch_of_counts_gives_what_each_gives_alone():
    wins = with_prior(np.random.default_rng(0).random((5, 3, 3)) * 9, 0.5)
    np.testing.assert_allclose(strengths(wins), [strengths(one) for one in wins], atol=1e-8)


def test_permuting_the_systems_permutes_the_strengths():
    wins, order = with_prior(np.arange(16.0).reshape(4, 4), 0.5), [2, 0, 3, 1]
    np.testing.assert_allclose(strengths(wins[np.ix_(order, order)]), strengths(wins)[order], atol=1e-8)


def test_a_system_that_never_lost_has_a_finite_strength_and_a_wide_interval():
    judgements = [judged(i, "a", "b", "left") for i in range(1, 11)]
    first, second = rank(judgements).places
    assert first.strength - second.strength == pytest.approx(math.log(10.5 / 0.5))
    assert first.low < first.strength < first.high < 20
    assert (first.first, first.last, second.first, second.last) == (1, 1, 2, 2)


def beta_quantile(a, b, share):
    """By summing the density on a fine grid in log-odds, where it has no poles."""
    x = np.linspace(-30, 30, 200_001)
    density = np.exp(-a * np.logaddexp(0, -x) - b * np.logaddexp(0, x))
    return float(x[np.searchsorted(np.cumsum(density) / density.sum(), share)])


@pytest.mark.parametrize(("won", "lost"), [(6, 3), (4, 0), (30, 25)])
def test_for_two_systems_the_interval_is_that_of_jeffreys(won, lost):
    wins = np.array([[[0.0, 1.0], [0.0, 0.0]]] * won + [[[0.0, 0.0], [1.0, 0.0]]] * lost)
    drawn = draw(wins, 40_000, 0)
    difference = drawn[:, 0] - drawn[:, 1]
    for share in (0.025, 0.5, 0.975):
        found = float((difference <= beta_quantile(won + 0.5, lost + 0.5, share)).mean())
        assert found == pytest.approx(share, abs=0.004)  # four standard errors in the middle


def test_pairs_of_one_sentence_do_not_count_as_independent():
    once = np.array([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]] * 8)
    widths = []
    for wins in (once, np.repeat(once, 9, axis=0), once * 9):
        low, high = np.quantile(draw(wins, 4_000, 0)[:, 0], [0.025, 0.975])
        widths.append(high - low)
    assert widths[1] < widths[0] / 2  # nine times the sentences: a third of the width
    assert widths[2] > widths[0] * 0.9  # nine judges of the same sentences: no new sentences


def test_what_follows_from_judgements_counts():
    judgements = [judged(5, "a", "b", "left"), judged(5, "c", "b", "equal"), judged(5, "d", "c", "right")]
    wins, ties = tally(judgements, "abcd")
    assert wins.tolist() == [[[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]]
    assert ties.tolist() == [[[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]]


def test_what_does_not_follow_does_not_count():
    wins, ties = tally([judged(1, "a", "b", "left"), judged(1, "c", "b", "left"), judged(2, "c", "a", "left")], "abc")
    assert wins[0].tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]  # a and c both beat b: which of them is better?
    assert wins[1].tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]  # one sentence says nothing about another
    assert not ties.any()


def test_the_same_number_in_another_source_is_another_sentence():
    news = [judged(17, "a", "b", "left")]
    talk = [replace(judged(17, *sides, "left"), source="talk") for sides in (("b", "c"), ("b", "a"))]
    wins, ties = tally([*news, *talk], "abc")
    assert wins.tolist() == [[[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 1], [0, 0, 0]]]  # a : c is unknown
    assert not ties.any()
    assert rank([*news, *talk]).sentences == 2


def test_what_is_said_of_one_text_does_not_follow_for_another_of_the_same_system():
    before, after = judged(1, "a", "b", "left"), judged(1, "b", "c", "left")
    wins, ties = tally([before, replace(after, left=Output(("b",), "another"))], "abc")
    assert wins.tolist() == [[[0, 1, 0], [0, 0, 1], [0, 0, 0]]]
    assert not ties.any()


def test_each_text_of_a_system_counts_and_none_against_the_other():
    same = judged(1, "b", "a", "left")
    wins, ties = tally([same, replace(same, left=Output(("b",), "another"), verdict="right")], "ab")
    assert wins.tolist() == [[[0, 1], [1, 0]]]  # by way of a, one text of b is better than the other
    twice, _ = tally([same, replace(same, left=Output(("b",), "another"))], "ab")
    assert twice.tolist() == [[[0, 0], [2, 0]]]
    assert not ties.any()


def test_systems_with_the_same_output_are_equal_and_share_what_is_said_of_it():
    wins, ties = tally([judged(1, "a+c", "b", "right")], "abc")
    assert wins[0].tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    assert ties[0].tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_a_circle_of_answers_makes_them_equal():
    circle = [judged(1, "a", "b", "left"), judged(1, "b", "c", "left"), judged(1, "c", "a", "left")]
    wins, ties = tally(circle, "abc")
    assert not wins.any()
    assert ties.sum() == 6


def test_judges_of_one_sentence_are_counted_side_by_side():
    wins, ties = tally([judged(1, "a", "b", "left", "x"), judged(1, "a", "b", "right", "y")], "ab")
    assert wins.tolist() == [[[0, 1], [1, 0]]]
    assert not ties.any()


def test_the_closure_agrees_with_following_every_path():
    rng = random.Random(2)
    for _ in range(50):
        edges = np.array([[rng.random() < 0.25 for _ in range(5)] for _ in range(5)])
        paths, power = edges, edges
        for _ in range(5):
            power = (power.astype(int) @ edges.astype(int)) > 0
            paths = paths | power
        assert (closure(edges) == paths).all()


def test_strengths_that_made_the_judgements_are_found_again():
    truth, rng = {"a": 1.0, "b": 0.2, "c": -1.2}, random.Random(4)
    judgements = []
    for sentence in range(1, 1201):
        one, other = rng.sample(sorted(truth), 2)
        left = rng.random() < 1 / (1 + math.exp(truth[other] - truth[one]))
        judgements.append(judged(sentence, one, other, "left" if left else "right"))
    found = rank(judgements)
    assert [place.system for place in found.places] == ["a", "b", "c"]
    for place in found.places:
        assert place.strength == pytest.approx(truth[place.system], abs=0.2)
        assert place.low < truth[place.system] < place.high


def test_the_ranking_counts_sentences_questions_and_judges():
    judgements = [
        judged(1, "a", "b", "left", "x"),
        judged(1, "a", "b", "left", "y"),
        Judgement(2, "s", Output(("a",), "same"), Output(("b",), "same"), "equal", "x"),
    ]
    found = rank(judgements)
    assert (found.sentences, found.questions, found.judges) == (2, 2, 2)
    assert found == rank(judgements)
    assert found.to_json()["systems"][0]["preferred"] == pytest.approx(100 * 2.5 / 3)


def test_without_judgements_there_is_no_ranking():
    with pytest.raises(DataError, match="0 judgements"):
        rank([])
