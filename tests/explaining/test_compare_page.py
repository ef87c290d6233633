"""The page of a comparison has what the comparison has, as text."""

import html
import json
import re

import pytest

from regard.evaluation import significance
from regard.evaluation.compare import Texts, compare
from regard.explaining.compare_page import comparison_page

EVIL = '<script>alert("x")</script>'
TEXTS = Texts(
    sources=["one two", "a b c d e f g", EVIL, "same"],
    references=["eins zwei", "A B C D E F G", "drei", "gleich"],
    a=["eins", "A B C D E F", "", "gleich"],
    b=["eins zwei", "A B C D", EVIL, "gleich"],
)


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(significance, "RESAMPLES", 20)
    monkeypatch.setattr(significance, "TRIALS", 20)
    return compare(TEXTS)


def test_text_stays_text_and_the_only_script_is_the_pages_own(found):
    page = comparison_page(found, (EVIL, "b"))
    assert page.count("<script") == 1
    assert "alert" in page
    assert "alert(&quot;x&quot;)" in page


def test_every_bucket_has_a_bar_with_its_counts_and_none_for_nothing(found):
    page = comparison_page(found, ("a", "b"))
    bars = re.findall(r'<div class="contest"><b>([^<]+)</b><div class="bar">(.*?)</div></div>', page)
    for contest, (name, pieces) in zip(found.contests, bars, strict=True):
        counts = re.findall(r'class="(\w+)" style="flex-grow:(\d+)"', pieces)
        expected = {"a": contest.wins_a, "tie": contest.ties, "b": contest.wins_b}
        assert name == contest.name
        assert {kind: int(count) for kind, count in counts} == {k: v for k, v in expected.items() if v}


def test_the_leader_of_each_metric_is_marked(found):
    page = comparison_page(found, ("a", "b"))
    for one in found.differences:
        row = re.search(rf"<tr><th scope=row>{one.metric}</th>(.*?)</tr>", page)[1]
        leaders = re.findall(r'data-name="([AB])" class="lead"', row)
        assert leaders == (["B"] if one.gain > 0 else ["A"] if one.gain < 0 else [])


def test_an_empty_output_is_named_and_missing_sides_leave_no_section(found):
    assert '<span class="none">nothing</span>' in comparison_page(found, ("a", "b"))
    same = compare(Texts(TEXTS.sources, TEXTS.references, TEXTS.a, TEXTS.a), ("chrf",))
    page = comparison_page(same, ("a", "b"))
    assert "furthest ahead" not in page
    assert "A and B have the same chrF." in page


def test_the_chart_has_a_point_for_each_bucket_and_system(found):
    page = comparison_page(found, ("a", "b"))
    lines = [json.loads(html.unescape(data)) for data in re.findall(r'data-points="([^"]*)"', page)]
    for letter, line in zip("AB", lines, strict=True):
        for contest, (_, _, note) in zip(found.contests, line, strict=True):
            bucket = {"A": contest.a, "B": contest.b}[letter]
            expected = f"{contest.name} words · {bucket.sentences} sentences · {letter} {bucket.bleu:.1f} BLEU"
            assert note == expected
