"""Links between words: what is written is read, two directions become one, errors are counted as people count them."""

import random

import pytest

from regard.errors import DataError
from regard.evaluation.alignment import (
    AlignmentScore,
    Gold,
    grow_diag_final_and,
    join,
    parse_gold,
    parse_links,
    refuse_outside,
    score_links,
    turn,
    write_links,
)


def drawn(rng, most=12, words=6):
    return frozenset((rng.randrange(words), rng.randrange(words)) for _ in range(rng.randrange(most)))


def gold_of(rng):
    sure = drawn(rng)
    return Gold(sure, sure | drawn(rng))


# ---------------------------------------------------------------- writing and reading
def test_links_that_are_written_are_read():
    rng = random.Random(1)
    for _ in range(50):
        links = drawn(rng)
        assert parse_links(write_links(links), "here") == links


def test_links_are_written_in_order():
    assert write_links(frozenset({(10, 0), (2, 3), (2, 1)})) == "2-1 2-3 10-0"
    assert write_links(frozenset()) == ""


def test_a_sure_link_is_possible_too():
    gold = parse_gold(" 0-0\t1p2 1-2 3p1 ", "here")
    assert gold == Gold(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2), (3, 1)}))


@pytest.mark.parametrize("bad", ["0_0", "0-", "-1-0", "a-b", "0–0", "1-2-3", "٣-1", "0P1", "1234567-0"])
def test_what_is_no_link_is_refused_with_its_place(bad):
    for parse in (parse_gold, parse_links):
        with pytest.raises(DataError, match=r"gold, line 7: found .* expected links such as 0-2"):
            parse(f"0-0 {bad}", "gold, line 7")


def test_a_link_that_is_only_possible_is_no_link_to_learn_from():
    with pytest.raises(DataError, match="line 3: found 1p2, expected links that are sure, such as 1-2"):
        parse_links("0-0 1p2", "line 3")


@pytest.mark.parametrize("link", [(2, 0), (0, 3), (9, 9)])
def test_a_link_to_a_word_that_is_not_there_is_refused(link):
    refuse_outside(frozenset({(1, 2)}), "two words", "now three words", "here")
    with pytest.raises(DataError, match=f"here: found the link {link[0]}-{link[1]}, but the pair has 2 source and 3"):
        refuse_outside(frozenset({(0, 0), link}), "two words", "now three words", "here")


# ---------------------------------------------------------------- two directions
def published(forward, backward):
    """Koehn's pseudo-code, loop by loop: e are target words, f source words."""
    size = range(1 + max([max(link) for link in forward | backward], default=0))
    alignment, union = set(forward & backward), forward | backward

    def e_aligned(e):
        return any(target == e for _, target in alignment)

    def f_aligned(f):
        return any(source == f for source, _ in alignment)

    while True:
        added = False
        for e in size:
            for f in size:
                if (f, e) in alignment:
                    for de, df in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                        new = (f + df, e + de)
                        if (not e_aligned(new[1]) or not f_aligned(new[0])) and new in union:
                            alignment.add(new)
                            added = True
        if not added:
            break
    for direction in (forward, backward):
        for e in size:
            for f in size:
                if not e_aligned(e) and not f_aligned(f) and (f, e) in direction:
                    alignment.add((f, e))
    return alignment


def test_growing_agrees_with_the_published_loops():
    rng, grown = random.Random(2), 0
    for _ in range(300):
        forward, backward = drawn(rng), drawn(rng)
        found = grow_diag_final_and(forward, backward)
        assert found == published(forward, backward)
        grown += forward & backward < found < forward | backward
    assert grown > 50  # neither everything nor nothing


def test_growing_by_hand():
    """Neighbours come in while one of their words is free; the rest only if both are."""
    forward, backward = frozenset({(0, 0), (2, 0)}), frozenset({(0, 0), (2, 2)})
    assert grow_diag_final_and(forward, backward) == {(0, 0), (2, 2)}
    forward, backward = frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 0), (3, 3)})
    assert grow_diag_final_and(forward, backward) == {(0, 0), (1, 0), (1, 1), (3, 3)}


def test_every_way_to_join_stays_between_both_and_either():
    rng = random.Random(3)
    for _ in range(50):
        forward, backward = drawn(rng), drawn(rng)
        assert join(forward, backward, "intersection") == forward & backward
        assert join(forward, backward, "union") == forward | backward
        assert forward & backward <= join(forward, backward, "grow-diag-final-and") <= forward | backward
        for how in ("intersection", "union", "grow-diag-final-and"):
            assert join(forward, forward, how) == forward
    assert turn(turn(forward)) == forward


# ---------------------------------------------------------------- scores
def test_the_error_rate_by_hand():
    """Of three links, one is sure and one more possible; one of two sure ones is found."""
    gold = parse_gold("0-0 1-2 2p3", "here")
    score = score_links(parse_links("0-0 1-1 2-3", "here"), gold)
    assert score.aer == pytest.approx(100 * (1 - (1 + 2) / (3 + 2)))
    assert score.precision == pytest.approx(100 * 2 / 3)
    assert score.recall == pytest.approx(100 * 1 / 2)
    assert score.to_json() == {
        "aer": score.aer,
        "precision": score.precision,
        "recall": score.recall,
        "links": 3,
        "sentences": 1,
    }


def test_all_that_is_sure_and_only_what_is_possible_is_without_error():
    rng = random.Random(4)
    for _ in range(50):
        gold = gold_of(rng)
        some = frozenset(rng.sample(sorted(gold.possible), len(gold.possible) // 2))
        assert score_links(gold.sure | some, gold).aer == 0


def test_the_score_of_a_corpus_is_that_of_its_sentences_side_by_side():
    rng = random.Random(5)
    links, gold = [drawn(rng) for _ in range(4)], [gold_of(rng) for _ in range(4)]

    def beside(sets):
        return frozenset((a + 10 * n, b + 10 * n) for n, each in enumerate(sets) for a, b in each)

    whole = score_links(beside(links), Gold(beside([g.sure for g in gold]), beside([g.possible for g in gold])))
    summed = sum(map(score_links, links, gold), AlignmentScore())
    assert (summed.aer, summed.precision, summed.recall) == (whole.aer, whole.precision, whole.recall)
    assert (summed.links, summed.sentences) == (whole.links, 4)


def test_turning_both_changes_no_score():
    rng = random.Random(6)
    for _ in range(20):
        links, gold = drawn(rng), gold_of(rng)
        assert score_links(turn(links), gold.turned()) == score_links(links, gold)


def test_nothing_found_and_nothing_sought_is_no_error():
    nothing = score_links(frozenset(), Gold(frozenset(), frozenset()))
    assert (nothing.aer, nothing.precision, nothing.recall) == (0, 0, 0)
    assert score_links(frozenset(), parse_gold("0-0", "here")).aer == 100
