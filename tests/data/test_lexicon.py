"""A lexicon from sentence pairs alone: what always goes together is found, by the equations of IBM Model 1."""

import math
from collections import defaultdict

import numpy as np
import pytest

from regard.data.examples import Example
from regard.data.lexicon import (
    ENOUGH,
    best_targets,
    estimate,
    improve,
    link,
    log_likelihood,
    most_frequent,
    telling,
)

NULL = None
FILL = 99


def pairs(*rows):
    return [Example(np.array(s, dtype=np.int32), np.array(t, dtype=np.int32)) for s, t in rows]


CORPUS = pairs(([4, 5], [7, 8, 8]), ([5], [8]), ([4, 6, 6], [9, 7]), ([], [7]), ([6, 4], [9]))


def plain_rounds(examples, rounds):
    """p(t | s) by nested loops over dictionaries, as the paper's algorithm reads."""
    p = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts, totals = defaultdict(float), defaultdict(float)
        for example in examples:
            sources = [NULL, *example.source.tolist()]
            for t in example.target.tolist():
                whole = sum(p[s, t] for s in sources)
                for s in sources:
                    counts[s, t] += p[s, t] / whole
                    totals[s] += p[s, t] / whole
        p = {(s, t): count / totals[s] for (s, t), count in counts.items()}
    return p


def plain_log_likelihood(examples, p):
    total = 0.0
    for example in examples:
        sources = [NULL, *example.source.tolist()]
        total += sum(math.log(sum(p[s, t] for s in sources) / len(sources)) for t in example.target.tolist())
    return total


def by_token(links, p):
    names = [NULL if s == 0 else s - 1 for s in links.source.tolist()]
    return dict(zip(zip(names, links.target.tolist(), strict=True), p.tolist(), strict=True))


@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_the_rounds_agree_with_loops_over_dictionaries(rounds):
    links = link(CORPUS)
    found, expected = by_token(links, estimate(links, rounds)), plain_rounds(CORPUS, rounds)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=1e-9)
    assert log_likelihood(links, estimate(links, rounds)) == pytest.approx(plain_log_likelihood(CORPUS, expected))


def test_the_likelihood_never_falls_and_every_row_sums_to_one():
    rng = np.random.default_rng(3)
    draw = lambda: rng.integers(4, 12, rng.integers(1, 7)).tolist()  # noqa: E731
    links = link(pairs(*((draw(), draw()) for _ in range(40))))
    p, before = estimate(links, 1), -math.inf
    for _ in range(12):
        after = log_likelihood(links, p)
        assert after >= before
        before, p = after, improve(links, p)
        np.testing.assert_allclose(np.bincount(links.source, p)[np.unique(links.source)], 1.0)


def test_a_bijection_is_recovered_whatever_the_order_of_the_words():
    rng = np.random.default_rng(5)
    meaning = dict(zip(range(4, 24), rng.permutation(np.arange(30, 50)).tolist(), strict=True))
    sentences = [rng.choice(np.arange(4, 24), rng.integers(2, 6), replace=False).tolist() for _ in range(300)]
    links = link(pairs(*((s, rng.permutation([meaning[w] for w in s]).tolist()) for s in sentences)))
    table = best_targets(links, estimate(links), vocab=24, most=1, least=0.5, fill=FILL)
    assert table[4:, 0].tolist() == [meaning[s] for s in range(4, 24)]


def test_the_best_targets_come_best_first_without_the_unlikely_and_the_unseen():
    links = link(CORPUS)
    p, least = estimate(links), 0.02
    table = best_targets(links, p, vocab=8, most=2, least=least, fill=FILL)
    known = by_token(links, p)
    for s in range(8):
        ranked = sorted((-p, t) for (source, t), p in known.items() if source == s and p >= least)
        assert table[s].tolist() == ([t for _, t in ranked] + [FILL, FILL])[:2]
    assert (table[[0, 1, 2, 3, 7]] == FILL).all()


def test_nothing_gives_an_empty_lexicon():
    links = link([])
    assert (best_targets(links, estimate(links), vocab=3, most=2, least=0.0, fill=FILL) == FILL).all()


def test_what_is_known_well_enough_is_left_out_and_the_rare_stays():
    common, rare = pairs(*[([4, 5], [6, 7])] * (3 * ENOUGH)), pairs(([4, 8], [9]), ([5, 8], [9, 6]))
    for seed in (1, 2):
        chosen = telling([*common, *rare, *pairs(([4], []))], seed)
        assert all(example in chosen for example in rare)
        assert ENOUGH - 2 <= len(chosen) <= ENOUGH + 2
        assert all(len(example.target) for example in chosen)


def test_the_choice_keeps_to_its_size_and_to_its_seed():
    rng = np.random.default_rng(2)
    draw = lambda: rng.integers(4, 90, rng.integers(1, 9)).tolist()  # noqa: E731
    examples = pairs(*((draw(), draw()) for _ in range(50)))
    chosen = telling(examples, 1, most=100)
    assert 0 < sum((len(e.source) + 1) * len(e.target) for e in chosen) <= 100
    assert chosen == telling(examples, 1, most=100)
    assert chosen != telling(examples, 2, most=100)


def test_the_most_frequent_are_counted_and_equals_come_by_id():
    examples = pairs(([1], [5, 4, 4]), ([1], [7, 5, 9]))
    assert most_frequent(examples, 3).tolist() == [4, 5, 7]
    assert most_frequent(examples, 10).tolist() == [4, 5, 7, 9]
