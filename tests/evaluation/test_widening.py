"""Whether a lead grows: BLEU from sums, and draws whose answer is known."""

import numpy as np
import pytest

from regard.evaluation.scores import bleu
from regard.evaluation.widening import bleu_of, chance_of_no_growth, counts, lead, lost

RIGHT = [f"the cat number {i} sits on a mat" for i in range(20)]
WRONG = [line.replace("cat number", "dog") for line in RIGHT]


def test_the_sums_of_the_counts_give_the_bleu_of_the_corpus():
    mixed = [right if i % 3 else wrong for i, (right, wrong) in enumerate(zip(RIGHT, WRONG, strict=True))]
    found = counts(mixed, RIGHT)
    assert bleu_of(found.sum(0)) == pytest.approx(bleu(mixed, RIGHT).score)
    some = [0, 1, 7, 7]  # drawn with repetition
    assert bleu_of(found[some].sum(0)) == pytest.approx(bleu([mixed[i] for i in some], [RIGHT[i] for i in some]).score)


def test_without_a_match_of_four_words_bleu_is_smoothed_as_sacrebleu_does():
    pair = ["one two three"], ["one two four"]
    assert bleu_of(counts(*pair)[0]) == pytest.approx(bleu(*pair).score)


def test_a_lead_in_one_group_alone_is_no_chance_and_turned_round_is_certain():
    here, there = range(10), range(10, 20)
    a = [*RIGHT[:10], *WRONG[10:]]  # as good here, worse there
    assert chance_of_no_growth(a, RIGHT, RIGHT, here, there) == 1 / 1001  # no draw of a thousand
    assert chance_of_no_growth(a, RIGHT, RIGHT, there, here) == 1.0


def test_what_is_lost_is_a_share_of_what_the_other_has():
    assert lead(15.0, 20.0) == 5.0
    assert lost(15.0, 20.0) == 0.25
    assert lost(0.0, 0.0) == 0.0


def test_where_everything_is_harder_a_lead_may_shrink_and_the_loss_grow():
    """Here B is right and A loses a little of much; there both have little, and A loses most of it."""
    here, there = range(10), range(10, 20)
    b = [*RIGHT[:10], *(line.replace("sits on a", "runs over") for line in RIGHT[10:])]
    a = [*WRONG[:10], *("mat" for _ in there)]
    assert chance_of_no_growth(a, b, RIGHT, here, there) > 0.9
    assert chance_of_no_growth(a, b, RIGHT, here, there, measure=lost) < 0.1


def test_leads_of_one_size_may_go_either_way():
    a = [wrong if i % 2 else right for i, (right, wrong) in enumerate(zip(RIGHT, WRONG, strict=True))]
    found = chance_of_no_growth(a, RIGHT, RIGHT, range(10), range(10, 20))
    assert 0.2 < found < 0.8
    assert found == chance_of_no_growth(a, RIGHT, RIGHT, range(10), range(10, 20))


def test_counts_are_whole_numbers_for_every_sentence():
    found = counts(WRONG, RIGHT)
    assert found.shape == (20, 10)
    # "the dog 0 sits on a mat" has 7 words, 6 of them right; "0 sits on a mat" alone has longer matches: 4, 3, 2.
    np.testing.assert_array_equal(found[0], [6, 4, 3, 2, 7, 6, 5, 4, 7, 8])
