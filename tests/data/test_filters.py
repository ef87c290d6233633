"""Each rule drops what it names and nothing else."""

import pytest
from pydantic import ValidationError

from regard.data.filters import clean, garbled
from regard.data.options import FilterRules
from regard.data.pairs import Pair

GOOD = Pair("A man rides a bicycle.", "Ein Mann fährt Fahrrad.")


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (Pair("", "etwas"), "empty"),
        (Pair("something", " \t\u3000"), "empty"),
        (Pair("x" * 2001, "y" * 2001), "too long"),
        (Pair("x" * 21, "yyy"), "length ratio"),
        (Pair("xxx", "y" * 21), "length ratio"),
        (Pair("a\x07b", "ab"), "bad encoding"),
        (Pair("itâ\x80\x99s", "es"), "bad encoding"),  # an apostrophe in UTF-8 that was read as Latin-1
        (Pair("na\ufffdve", "naiv"), "bad encoding"),
        (Pair("lone \ud83d", "half"), "bad encoding"),
    ],
)
def test_a_bad_pair_is_dropped_for_its_reason_and_its_neighbours_stay(pair, reason):
    other = Pair("Two dogs.", "Zwei Hunde.")
    assert clean([GOOD, pair, other], FilterRules()) == ([GOOD, other], {reason: 1})


@pytest.mark.parametrize(
    "pair",
    [
        Pair("x" * 2000, "y" * 2000),
        Pair("x" * 24, "yyyy"),  # exactly sixfold
        Pair("OK", "y" * 20),  # too short to judge
        Pair("You should have told me about it earlier.", "早く言ってよ。"),
        Pair("a\tb\x0cc", "ab"),
        Pair("one \ufffd in a text of fair length", "ein Zeichen in einem langen Text"),
        Pair("same", "same"),
    ],
)
def test_a_pair_at_the_edge_of_a_rule_stays_unchanged(pair):
    assert clean([pair], FilterRules()) == ([pair], {})


def test_a_rule_can_be_turned_off():
    lopsided = Pair("x" * 600, "y")
    assert clean([lopsided], FilterRules(max_ratio=None)) == ([lopsided], {})
    assert clean([GOOD, GOOD], FilterRules(drop_duplicates=False)) == ([GOOD, GOOD], {})


def test_the_first_of_equal_pairs_stays_and_other_translations_of_its_source_do_too():
    other = Pair(GOOD.source, "Ein Mann radelt.")
    assert clean([GOOD, other, GOOD, GOOD], FilterRules()) == ([GOOD, other], {"duplicate": 2})


def test_copies_are_dropped_on_demand():
    assert clean([GOOD, Pair("Berlin ", "Berlin")], FilterRules(drop_identical=True)) == ([GOOD], {"identical": 1})


def test_kept_and_dropped_add_up():
    pairs = [GOOD, GOOD, Pair("", ""), Pair("", ""), Pair("x" * 99, "y"), Pair("\x00a", "b"), Pair("b", "\ufffd")]
    kept, dropped = clean(iter(pairs), FilterRules())
    assert len(kept) + sum(dropped.values()) == len(pairs)
    assert dropped == {"duplicate": 1, "empty": 2, "length ratio": 1, "bad encoding": 2}


def test_one_replacement_character_in_twenty_is_the_most():
    assert not garbled("\ufffd" + "a" * 19)
    assert garbled("\ufffd" + "a" * 18)


def test_impossible_rules_are_refused():
    with pytest.raises(ValidationError, match="min_characters 9 exceeds max_characters 5"):
        FilterRules(min_characters=9, max_characters=5)
