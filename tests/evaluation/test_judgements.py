"""One schema, read strictly: what was written comes back, everything else is refused by line."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError
from regard.evaluation.judgements import Judgement, Output, from_json, read_judgements, write_judgements

ONE = Judgement(17, "A man.", Output(("small",), "Ein Mann."), Output(("large", "old"), "Ein Mensch."), "right", "anna")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(derandomize=True, deadline=None)
@given(TEXT, TEXT, TEXT, st.sampled_from(["left", "right", "equal"]))
def test_what_is_written_is_read(source, left, right, verdict):
    one = Judgement(
        3, source, Output(("a",), left), Output(("b", "c"), right), "equal" if left == right else verdict, source
    )
    assert from_json(one.to_json(), "here") == one
    assert "\n" not in one.to_json()


def test_a_sentence_is_its_number_and_its_source():
    def about(**values):
        return from_json(changed(**values), "here").about

    assert about() == about(verdict="left", judge="ben", left={"systems": ["x"], "text": "y"}) == ONE.about
    assert len({ONE.about, about(sentence=18), about(source="A woman.")}) == 3


def test_a_file_keeps_the_order_and_any_line_separator_inside_a_text(tmp_path):
    odd = Judgement(2, "a\u2028b\x85c\nd", Output(("x",), "1"), Output(("y",), "2"), "left")
    write_judgements(tmp_path / "j", [ONE, odd, ONE])
    assert read_judgements(tmp_path / "j") == [ONE, odd, ONE]


def test_the_line_that_the_page_shows_is_read():
    page = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text(encoding="utf-8")
    line = re.search(r"```json\n(.*)\n```", page)[1]
    found = from_json(line, "here")
    assert found.right.systems == ("large", "old")
    assert json.loads(found.to_json()) == json.loads(line)
    assert from_json(line.replace(', "judge": "anna"', ""), "here").judge == ""
    assert set(re.findall(r"^\| (`.*?) \|", page.partition("file of judgements")[2], re.MULTILINE)) == {
        *(f"`{key}`" for key in json.loads(line) if key not in ("left", "right")),
        "`left`, `right`",
    }


def changed(**values):
    return json.dumps({**json.loads(ONE.to_json()), **values})


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("{", "Invalid JSON", id="cut short"),
        pytest.param("[]", "an object", id="a list"),
        pytest.param(b"\xff\xfe", "Invalid JSON", id="no text"),
        pytest.param(changed(sentence=0), "sentence: ", id="sentence 0"),
        pytest.param(changed(sentence="17"), "sentence: ", id="sentence as text"),
        pytest.param(changed(verdict="better"), "verdict: ", id="unknown verdict"),
        pytest.param(changed(score=3), "score: ", id="unknown key"),
        pytest.param(changed(left={"systems": [], "text": "x"}), "left.systems: ", id="nobody's text"),
        pytest.param(changed(left={"systems": ["a"]}), "left.text: ", id="no text on a side"),
        pytest.param(changed(left={"systems": ["old"], "text": "x"}), "'old' is on both sides", id="both sides"),
        pytest.param(changed(left={"systems": ["a"], "text": "Ein Mensch."}), "same text", id="same text not equal"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path, line, found):
    raw = line if isinstance(line, bytes) else line.encode()
    (tmp_path / "j").write_bytes(ONE.to_json().encode() + b"\n" + raw + b"\n")
    with pytest.raises(DataError, match=f"j, line 2: .*{found}"):
        read_judgements(tmp_path / "j")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_judgements(tmp_path / "none")
    with pytest.raises(DataError, match="cannot be read"):
        read_judgements(tmp_path)
