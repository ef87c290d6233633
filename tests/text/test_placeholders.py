"""Placeholders are found where they are, and a translation that harms one is recognised."""

import random
from itertools import pairwise

import pytest

from regard.text.placeholders import Placeholders, merged

ALL = Placeholders(terms=["Regard", "do not"])


def kinds(text):
    return [(one.kind, one.text) for one in ALL.find(text)]


@pytest.mark.parametrize(
    ("text", "kind", "codes"),
    [
        ("%s and %d, %1$s: %-5.2f %ld %%", "format", ["%s", "%d", "%1$s", "%-5.2f", "%ld", "%%"]),
        ("%(name)s of %(n)03d", "format", ["%(name)s", "%(n)03d"]),
        ("{name} {0} {} {0:.2f} {a.b[0]}", "brace", ["{name}", "{0}", "{}", "{0:.2f}", "{a.b[0]}"]),
        ("${x} {{x}} {{ user.name }} %{n} #{i}", "brace", ["${x}", "{{x}}", "{{ user.name }}", "%{n}", "#{i}"]),
        ('<b>a</b><br/> <a href="x y">', "tag", ["<b>", "</b>", "<br/>", '<a href="x y">']),
        ("See https://a.b/c?d=e&f#g, or (www.x.org).", "url", ["https://a.b/c?d=e&f#g", "www.x.org"]),
        ("https://例え.jp/a https://a.b/日", "url", ["https://a.b/"]),
        ("a.b+c@d-e.co.uk.", "email", ["a.b+c@d-e.co.uk"]),
        (
            "10 km, 3.5kg 1,000 m 50% 20 °C 5\u00a0GB",
            "measure",
            ["10 km", "3.5kg", "1,000 m", "50%", "20 °C", "5\u00a0GB"],
        ),
        ("Regard, do not; Regards regard", "term", ["Regard", "do not"]),
    ],
)
def test_what_is_found(text, kind, codes):
    assert kinds(text) == [(kind, code) for code in codes]


@pytest.mark.parametrize(
    "text",
    [
        "100% sure, 50 % discount? no: 5 min",  # the percent signs are units, not codes
        "100 %sicher",
        "a < b and c > d",
        "{not a code}",
        "the 1990s, 3 mars 2022, 5 in a row, 3. März",
        "me@home",
        "plain words",
    ],
)
def test_what_is_no_code(text):
    assert [one for one in kinds(text) if one[0] not in ("measure",)] == []


def test_only_kinds_that_were_asked_for_are_found():
    text = "Regard {x} %s"
    assert [one.text for one in Placeholders((), ["Regard"]).find(text)] == ["Regard"]
    assert [one.text for one in Placeholders(("brace",)).find(text)] == ["{x}"]


@pytest.mark.parametrize("seed", range(8))
def test_placeholders_are_in_order_disjoint_and_what_they_say(seed):
    rng = random.Random(seed)
    parts = [
        "%s",
        "%",
        "{",
        "}",
        "a",
        "$",
        "<b>",
        "</",
        ">",
        "http://",
        "w.w",
        "@",
        "12",
        " km",
        " ",
        "Regard",
        "é",
        "日",
    ]
    for _ in range(60):
        text = "".join(rng.choice(parts) for _ in range(rng.randrange(14)))
        found, end = ALL.find(text), 0
        for one in found:
            assert one.start >= end
            assert text[one.start : one.end] == one.text != ""
            end = one.end
        spans = merged(found)
        assert all(left[1] < right[0] for left, right in pairwise(spans))
        assert "".join(text[a:b] for a, b in spans) == "".join(one.text for one in found)
        assert ALL.are_kept(text, text)


def test_of_two_that_overlap_the_longer_is_found():
    assert kinds("https://a.b/%s?x={id}") == [("url", "https://a.b/%s?x="), ("brace", "{id}")]
    assert kinds("{{x}}") == [("brace", "{{x}}")]


@pytest.mark.parametrize(
    ("source", "output", "kept"),
    [
        ("Hello %s", "Hallo %s", True),
        ("Hello %s", "Hallo", False),
        ("Hello %s", "Hallo %S", False),
        ("Hello %s", "Hallo %s %s", False),
        ("Hello %s", "Hallo % s", False),
        ("Hello", "Hallo %s", False),
        ("%s of %d", "%d of %s", False),
        ("%1$s of %2$d", "%2$d von %1$s", True),
        ("{a} of {b}", "{b} von {a}", True),
        ("{} of {b}", "{b} von {}", True),
        ("<b>a</b> c", "c </b>a<b>", False),
        ("<b>a</b> c", "c <b>a</b>", True),
        ("3.5 kg", "3,5 kg", True),
        ("3.5 kg", "35 kg", False),
        ("1,000 km and 5%", "5 % und 1.000 km", True),
        ("ten metres", "10 m", True),
        ("10 m", "zehn Meter", False),
        ("I like Regard", "Ich mag Regards", False),
        ("I like Regard", "Regard mag ich", True),
        ("mail a@b.de", "schreibe an a@b.de.", True),
    ],
)
def test_a_translation_keeps_them_or_does_not(source, output, kept):
    assert ALL.are_kept(source, output) is kept


def test_a_long_run_of_letters_is_looked_at_once():
    text = "a" * 50_000 + "<a " + "b " * 20_000 + "%" * 1001
    assert [one.text for one in ALL.find(text)] == ["%%"] * 500
