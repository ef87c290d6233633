"""Minimum Bayes risk against sacreBLEU and a double loop."""

import random

import numpy as np
import pytest
from sacrebleu import sentence_bleu, sentence_chrf

from regard.decoding.consensus import UTILITIES, by_agreement, chrf_table, expected

WORDS = ["ein", "Mann", "fährt", "Rad", ",", "auf", "der", "Straße", ".", "und", "Hund,", "(gut)", "3.5", "a"]
REFERENCE = {"chrf": sentence_chrf, "bleu": sentence_bleu}
every_utility = pytest.mark.parametrize("name", UTILITIES)


def candidates(count, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(0, 9))) for _ in range(count)]


@every_utility
def test_the_table_holds_sacrebleus_scores_of_every_two(name):
    texts = [*candidates(20, 1), "", " ", "a", "ab", "Ein Mann", "Ein Mann "]
    found = UTILITIES[name](texts)
    for i, hypothesis in enumerate(texts):
        for j, reference in enumerate(texts):
            assert found[i, j] == pytest.approx(REFERENCE[name](hypothesis, [reference]).score, abs=1e-9)


@every_utility
def test_the_choice_is_that_of_a_double_loop(name):
    for seed in range(8):
        texts = candidates(6, seed)
        texts += texts[2:4]  # drawn twice
        means = []
        for i, hypothesis in enumerate(texts):
            others = [text for j, text in enumerate(texts) if j != i]
            means.append(sum(REFERENCE[name](hypothesis, [other]).score for other in others) / len(others))
        order = by_agreement(texts, UTILITIES[name])
        assert sorted(order) == list(range(8))
        assert [means[i] for i in order] == pytest.approx(sorted(means, reverse=True))


def test_what_came_twice_counts_twice():
    """u = [[1, 0], [0, 1]]: alone the two are equal, and the first wins; said twice, the second has a friend."""

    def equality(texts):
        return np.eye(len(texts))

    assert by_agreement(["a", "b"], equality) == [0, 1]
    assert by_agreement(["a", "b", "b"], equality) == [1, 2, 0]


def test_the_expectation_leaves_the_candidate_itself_out():
    table = np.array([[9.0, 1.0, 3.0], [2.0, 9.0, 4.0], [0.0, 5.0, 9.0]])
    assert expected(table).tolist() == [2.0, 3.0, 2.5]
    assert expected(np.array([[9.0]])).tolist() == [0.0]


def test_one_candidate_is_the_choice_and_none_is_none():
    assert by_agreement(["only"], chrf_table) == [0]
    assert by_agreement(["same", "same"], chrf_table) == [0, 1]


def test_the_order_they_come_in_does_not_change_who_is_chosen():
    texts = candidates(7, 5)
    best = texts[by_agreement(texts, chrf_table)[0]]
    for seed in range(5):
        shuffled = random.Random(seed).sample(texts, len(texts))
        assert shuffled[by_agreement(shuffled, chrf_table)[0]] == best
