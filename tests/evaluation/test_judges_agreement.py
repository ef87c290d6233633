"""People who always agree, never agree, or answer at random; and a case worked by hand."""

import random
from dataclasses import replace

import pytest

from regard.evaluation.agreement import Agreement, agreement
from regard.evaluation.judgements import Judgement, Output


def judged(sentence, left, right, verdict, judge):
    sides = (Output(tuple(side.split("+")), f"text of {side}") for side in (left, right))
    return Judgement(sentence, "source", *sides, verdict, judge)


def test_one_judge_has_nobody_to_agree_with():
    assert agreement([judged(1, "a", "b", "left", "x"), judged(2, "a", "b", "left", "y")]) is None


def test_sides_do_not_matter():
    found = agreement([judged(1, "a", "b", "left", "x"), judged(1, "b", "a", "right", "y")])
    assert found == Agreement(pairs=1, same=100.0, chance=50.0)
    assert found.kappa == 1


def test_a_case_worked_by_hand():
    said = {"x": ["left", "left", "equal", "right"], "y": ["left", "right", "equal", "equal"]}
    found = agreement([judged(n, "a", "b", v, judge) for judge, all_ in said.items() for n, v in enumerate(all_, 1)])
    # 2 of 4 agree; 3 of 8 answers are "equal": chance = (3/8)² + (5/8)² / 2 = 21.5/64
    assert (found.pairs, found.same) == (4, 50)
    assert found.chance == pytest.approx(100 * 21.5 / 64)
    assert found.kappa == pytest.approx((32 - 21.5) / (64 - 21.5))


def test_three_judges_are_three_pairs_of_people():
    verdicts = {"x": "left", "y": "left", "z": "right"}
    found = agreement([judged(1, "a", "b", verdict, judge) for judge, verdict in verdicts.items()])
    assert (found.pairs, found.same) == (3, pytest.approx(100 / 3))


def test_what_follows_from_answers_counts():
    by_sorting = [judged(1, "a", "b", "left", "x"), judged(1, "b", "c", "left", "x")]
    found = agreement([*by_sorting, judged(1, "c", "a", "left", "y")])
    assert (found.pairs, found.same) == (1, 0)  # x never saw a beside c, but said a > b > c
    assert found.kappa == -1


def test_texts_that_are_the_same_are_no_answers():
    assert agreement([judged(1, "a+b", "c", "left", judge) for judge in "xy"]).pairs == 2  # a : c and b : c, not a : b
    idle = [Judgement(1, "s", Output(("a",), "t"), Output(("b",), "t"), "equal", judge) for judge in "xy"]
    assert agreement(idle) is None


def test_people_can_only_disagree_about_the_same_two_texts_of_one_source():
    one, other = judged(1, "a", "b", "left", "x"), judged(1, "a", "b", "right", "y")
    assert agreement([one, other]).pairs == 1
    assert agreement([one, replace(other, source="another")]) is None
    assert agreement([one, replace(other, left=Output(("a",), "another"))]) is None


def test_where_all_is_equal_there_is_no_kappa():
    found = agreement([judged(1, "a", "b", "equal", judge) for judge in "xy"])
    assert (found.same, found.chance, found.kappa) == (100, 100, None)


def test_people_who_answer_at_random_have_no_kappa_to_speak_of():
    rng = random.Random(5)
    answers = ["left", "left", "right", "right", "equal"]
    found = agreement([judged(n, "a", "b", rng.choice(answers), judge) for n in range(1, 4001) for judge in "xy"])
    assert found.kappa == pytest.approx(0, abs=0.05)
    assert found.same == pytest.approx(100 * (0.16 + 0.16 + 0.04), abs=3)
