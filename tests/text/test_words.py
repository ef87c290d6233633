"""Where words begin and end, and terms found there."""

import random

import pytest

from regard.text.words import Hit, Terms, joins, standing


def test_letters_figures_and_underscores_join_and_scripts_without_spaces_do_not():
    assert all(map(joins, "aZ9_éßжא"))
    assert not any(map(joins, " .-%{日本のไ한"))


def test_a_phrase_stands_where_it_is_no_part_of_a_longer_word():
    assert standing("net, Netz net_a net", "net") == [0, 16]
    assert standing("100% of %s and %sx", "%s") == [8]
    assert standing("日本語の本", "本") == [1, 4]
    assert standing("aaaa", "aa") == []
    assert standing("a.a.a", "a.a") == [0]


def test_the_longest_term_wins_and_small_letters_stand_for_every_case():
    terms = Terms({"net": "Netz", "net worth": "Vermögen", "SAP": "SAP", "日本": "Japan"})
    assert terms.find("Net worth, NET; nets sap SAP") == [
        Hit(0, 9, "Vermögen"),
        Hit(11, 14, "Netz"),
        Hit(25, 28, "SAP"),
    ]
    assert terms.find("日本語") == [Hit(0, 2, "Japan")]
    assert Terms({}).find("net") == []


@pytest.mark.parametrize("seed", range(5))
def test_terms_are_found_as_by_trying_every_place(seed):
    rng = random.Random(seed)
    letters = "aB _-日"
    entries = {"".join(rng.choices(letters, k=rng.randint(1, 3))).strip() or "a": "t" for _ in range(6)}
    terms = Terms(entries)
    for _ in range(50):
        text = "".join(rng.choices(letters, k=12))
        expected, start = [], 0
        while start < len(text):
            fitting = [
                term
                for term in entries
                if (text[start:].startswith(term) or (term.islower() and text[start:].lower().startswith(term)))
                and stands_by_definition(text, start, start + len(term))
            ]
            if fitting:
                longest = max(fitting, key=len)
                expected.append(Hit(start, start + len(longest), "t"))
                start += len(longest)
            else:
                start += 1
        assert terms.find(text) == expected


def stands_by_definition(text, start, end):
    def together(left, right):
        return joins(left) and joins(right)

    before = start == 0 or not together(text[start - 1], text[start])
    return before and (end == len(text) or not together(text[end - 1], text[end]))
