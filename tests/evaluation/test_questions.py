"""A person is asked no more than the bound, never about identical outputs, and may stop and go on anywhere."""

import math
import random
from itertools import permutations

import pytest

from regard.evaluation.judgements import answer
from regard.evaluation.questions import Sheet, most_questions, next_question, sample, sorting


def sort(items, judge):
    """The groups, and every question with its answer."""
    questions, process = [], sorting(items)
    try:
        pair = next(process)
        while True:
            questions.append((*pair, judge(*pair)))
            pair = process.send(questions[-1][2])
    except StopIteration as ended:
        return ended.value, questions


def compare(one, other):
    return (one < other) - (one > other)  # the smaller is the better


@pytest.mark.parametrize("count", range(1, 7))
def test_a_consistent_judge_gets_what_sorted_gives_within_the_bound(count):
    worst = 0
    for order in permutations(range(count)):
        groups, questions = sort(order, compare)
        assert [item for group in groups for item in group] == sorted(order)
        worst = max(worst, len(questions))
    assert worst == most_questions(count)  # the bound is reached, so it cannot be lower


def test_equal_items_share_a_group():
    groups, questions = sort([3, 1, 3, 2, 1, 3], compare)
    assert groups == [[1, 1], [2], [3, 3, 3]]
    assert len(questions) <= most_questions(6)


@pytest.mark.parametrize("seed", range(40))
def test_a_judge_who_answers_at_random_is_asked_no_more_and_never_contradicted(seed):
    rng = random.Random(seed)
    items = list(range(rng.randint(2, 9)))
    groups, questions = sort(items, lambda *_: rng.choice((-1, 0, 1)))
    place = {item: i for i, group in enumerate(groups) for item in group}
    assert len(questions) <= most_questions(len(items))
    assert sorted(place) == items
    for one, other, verdict in questions:
        assert (place[other] > place[one]) - (place[other] < place[one]) == verdict


def test_the_bound_worked_by_hand_and_near_the_best_possible():
    assert [most_questions(k) for k in range(7)] == [0, 0, 1, 3, 5, 8, 11]
    for k in range(2, 20):
        least = math.ceil(math.log2(math.factorial(k)))
        assert least <= most_questions(k) < least + k


def test_a_larger_sample_begins_with_the_smaller_one():
    assert sample(100, 30, 5)[:7] == sample(100, 7, 5)
    assert sorted(sample(9, 20, 1)) == list(range(9))
    assert sample(100, 7, 5) != sample(100, 7, 6)


SHEETS = [
    Sheet(4, "four", {"p": "aa", "q": "b", "r": "cccc", "s": "b"}),
    Sheet(2, "two", {"p": "same", "q": "same", "r": "same", "s": "same"}),
    Sheet(7, "seven", {"p": "xxx", "q": "y", "r": "zz", "s": "vvvvv"}),
]
SHORTER = {True: "left", False: "right"}


def session(judgements, questions, seed=1, judge="me"):
    """At most `questions` more answers of a judge who likes short outputs, after those that are there."""
    found = list(judgements)
    while upcoming := next_question(SHEETS, found, judge, seed):
        question = upcoming.question
        if question.idle:
            found.append(answer(question, "equal", judge))
            continue
        if questions == 0:
            break
        questions -= 1
        found.append(answer(question, SHORTER[len(question.left.text) < len(question.right.text)], judge))
    return found


def test_a_session_that_stops_after_every_answer_ends_like_one_that_does_not():
    whole, parts = session([], 100), []
    for _ in range(100):
        parts = session(parts, 1)
    assert parts == whole
    assert next_question(SHEETS, whole, "me", 1) is None


def test_identical_outputs_are_never_asked_and_always_counted():
    whole = session([], 100)
    assert all(one.verdict == "equal" for one in whole if one.idle)
    assert [one.sentence for one in whole if one.idle] == [2]
    assert {side.systems for one in whole if one.sentence == 4 for side in (one.left, one.right)} == {
        ("p",),
        ("q", "s"),
        ("r",),
    }
    assert {name for one in whole if one.idle for side in (one.left, one.right) for name in side.systems} == set("pqrs")


def test_the_number_of_questions_that_may_follow_never_rises_and_is_kept():
    judgements, left = [], [most_questions(3) + most_questions(4)]
    while upcoming := next_question(SHEETS, judgements, "me", 1):
        assert upcoming.at_most <= left[-1]
        left.append(upcoming.at_most)
        judgements = session(judgements, 1)
    asked = [one for one in judgements if not one.idle]
    assert len(asked) <= left[1] == left[0]
    assert all(len(asked) - i <= most for i, most in enumerate(left[1 : len(asked) + 1]))


def test_the_answers_of_others_are_not_taken_for_ones_own():
    others = session([], 100, judge="other")
    assert next_question(SHEETS, others, "me", 1).question.sentence == 4


def test_sides_are_drawn_at_random_and_the_same_when_asked_again():
    sheets = [Sheet(i, "s", {"p": f"p{i}", "q": f"q{i}"}) for i in range(1, 301)]
    first = [next_question([sheet], [], "", 1).question for sheet in sheets]
    assert first == [next_question([sheet], [], "", 1).question for sheet in sheets]
    share = sum(question.left.systems == ("p",) for question in first) / len(first)
    assert 0.4 < share < 0.6  # beyond three standard deviations otherwise
