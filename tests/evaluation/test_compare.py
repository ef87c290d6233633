"""A comparison counts every sentence once and treats both sides alike."""

import json
from dataclasses import replace

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError
from regard.evaluation import significance
from regard.evaluation.compare import Texts, compare, word_differences

TEXTS = Texts(
    sources=["eins zwei", "eins zwei drei vier fünf sechs", "zwei", "a b c d e f g", "x y z"],
    references=["one two", "one two three four five six", "two", "g f e d c b a", "z y x"],
    a=["one two", "one two three four five", "too", "nothing", "z y x"],
    b=["one", "one two three four five six", "two", "nothing", "z y x w"],
)
WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8).map(" ".join)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(significance, "RESAMPLES", 20)
    monkeypatch.setattr(significance, "TRIALS", 20)


def test_wins_worked_by_hand():
    short, long = compare(TEXTS, ("chrf",)).contests
    assert (short.name, short.a.sentences, short.mean_words) == ("0–5", 3, 2)
    assert (short.wins_a, short.ties, short.wins_b) == (2, 0, 1)  # one two, z y x; two
    assert (long.name, long.wins_a, long.ties, long.wins_b) == ("6–10", 0, 1, 1)
    assert long.mean_words == 6.5


def test_every_sentence_is_won_lost_or_tied_once():
    found = compare(TEXTS, ("chrf",))
    assert sum(one.wins_a + one.wins_b + one.ties for one in found.contests) == found.sentences == 5
    assert found.identical == 1


def test_the_bleu_of_a_bucket_is_that_of_its_sentences():
    _, long = compare(TEXTS, ("chrf",)).contests
    inside = [1, 3]
    references = [[TEXTS.references[i] for i in inside]]
    assert long.a.bleu == sacrebleu.corpus_bleu([TEXTS.a[i] for i in inside], references).score
    assert long.b.bleu == sacrebleu.corpus_bleu([TEXTS.b[i] for i in inside], references).score


def test_the_most_different_sentences_come_first_on_the_side_that_leads():
    found = compare(TEXTS, ("chrf",))
    assert [row.line for row in found.for_a] == [1, 5]
    assert [row.line for row in found.for_b] == [3, 2]
    for row in (*found.for_a, *found.for_b):
        assert row.chrf_a == sacrebleu.sentence_chrf(row.a, [row.reference]).score
        assert row.chrf_b == sacrebleu.sentence_chrf(row.b, [row.reference]).score
    assert [row.line for row in compare(TEXTS, ("chrf",), examples=1).for_b] == [3]


def test_swapping_the_systems_swaps_the_sides():
    here, there = compare(TEXTS, ("bleu",)), compare(replace(TEXTS, a=TEXTS.b, b=TEXTS.a), ("bleu",))
    assert [row.line for row in here.for_a] == [row.line for row in there.for_b]
    assert [(one.wins_a, one.ties) for one in here.contests] == [(one.wins_b, one.ties) for one in there.contests]


def test_the_json_has_all_of_it():
    found = json.loads(json.dumps(compare(TEXTS).to_json()))
    assert [one["metric"] for one in found["metrics"]] == ["BLEU", "chrF", "TER"]
    chrf = found["metrics"][1]
    assert chrf["difference"] == chrf["b"]["score"] - chrf["a"]["score"]
    assert chrf["verdict"].startswith("B is")
    assert found["by_length"][0] == {
        "shortest": 0,
        "longest": 5,
        "sentences": 3,
        "mean_words": 2.0,
        "bleu_a": found["by_length"][0]["bleu_a"],
        "bleu_b": found["by_length"][0]["bleu_b"],
        "wins_a": 2,
        "wins_b": 1,
        "ties": 0,
    }
    assert found["for_b"][0]["source"] == "zwei"
    assert found["seed"] == 12345


@settings(derandomize=True, deadline=None)
@given(WORDS, WORDS)
def test_what_is_not_marked_is_common_to_both_and_nothing_is_lost(a, b):
    ours, theirs = word_differences(a, b)
    assert " ".join(words for words, _ in ours) == a
    assert " ".join(words for words, _ in theirs) == b
    common = [[word for words, differs in runs if not differs for word in words.split()] for runs in (ours, theirs)]
    assert common[0] == common[1]


def test_marks_worked_by_hand():
    ours, theirs = word_differences("a man rides", "a woman rides fast")
    assert ours == [("a", False), ("man", True), ("rides", False)]
    assert theirs == [("a", False), ("woman", True), ("rides", False), ("fast", True)]


def test_unequal_counts_are_refused():
    with pytest.raises(DataError, match="4 hypotheses for 5 references"):
        compare(replace(TEXTS, b=TEXTS.b[:-1]))
