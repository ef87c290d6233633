"""The page of a study and its Markdown have every cell, as text."""

import html
import re

from regard.explaining.chart import Point, Series
from regard.explaining.study_page import Contents, Figure, Table, study_markdown, study_page

EVIL = '<script>alert("x")</script>'
CONTENTS = Contents(
    title=f"Title {EVIL}",
    question="Which?",
    findings=("One finding.", EVIL),
    tables=(Table("Numbers", ("", "BLEU", "PPL"), (("rnn", "1.5", ""), ("gru", "2.5", "7.0")), "a note"),),
    figures=(Figure("a chart", (Series("ours", (Point(1.0, 2.0, "a point"), Point(2.0, 3.0, "last"))),), "minutes"),),
    notes=("how",),
)
FACTS = {"command": "regard study x", "commit": "abc"}


def test_text_stays_text_and_the_only_script_is_the_pages_own():
    page = study_page(CONTENTS, FACTS)
    assert page.count("<script") == 1
    assert page.count(html.escape(EVIL)) == 3  # title, heading, finding
    assert "http" not in page.replace("http-equiv", "")


def test_every_cell_has_its_head_beside_it_and_an_empty_one_has_nothing():
    page = study_page(CONTENTS, FACTS)
    cells = re.findall(r"<th scope=row>(\w+)</th>((?:<td.*?</td>)+)", page)
    assert cells == [
        ("rnn", '<td data-name="BLEU">1.5</td><td></td>'),
        ("gru", '<td data-name="BLEU">2.5</td><td data-name="PPL">7.0</td>'),
    ]


def test_what_is_not_there_has_no_heading():
    page = study_page(Contents("t", "q", (), (), (), ()), FACTS)
    assert re.findall("<h2>(.*?)</h2>", page) == ["How it was measured"]


def test_the_markdown_has_a_column_for_every_head_and_the_same_cells():
    lines = study_markdown(CONTENTS, FACTS).splitlines()
    start = lines.index("|  | BLEU | PPL |")
    assert lines[start + 1 : start + 4] == ["|---|--:|--:|", "| rnn | 1.5 |   |", "| gru | 2.5 | 7.0 |"]
    assert {"- One finding.", "a note", "how", "- commit: abc"} <= set(lines)
