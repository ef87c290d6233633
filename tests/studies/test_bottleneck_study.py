"""The bottleneck: thirds of a test set by source words, and what attention adds on each."""

import pytest
from made_up import result

from regard.evaluation import significance
from regard.evaluation.scores import bleu
from regard.recipe.presets import choose
from regard.recipe.recipe import parse, with_settings
from regard.studies import bottleneck
from regard.studies.report import TestSet
from regard.studies.rows import MULTI30K, Plan

# Sources of 3, 1, 2, 9, 1, 5 and 4 words.
SOURCES = ["a b c", "x", "a b", "a b c d e f g h i", "y", "a b c d e", "a b c d"]
REFERENCES = ["one two three four five"] * 7
TEST = TestSet(SOURCES, REFERENCES)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(significance, "RESAMPLES", 50)
    monkeypatch.setattr(significance, "TRIALS", 50)


def test_thirds_go_by_source_words_and_then_by_line_and_the_middle_takes_the_rest():
    assert bottleneck.thirds(SOURCES) == [[1, 4], [2, 0, 6], [5, 3]]


def test_the_rows_of_the_gap_differ_by_attention_alone():
    rows = {row.name: row for row in bottleneck.ROWS}

    def model(name):
        row = rows[name]
        return parse(with_settings(choose([], row.preset), row.settings), name).model.model_dump()

    have, lack = model(bottleneck.WITH), model(bottleneck.WITHOUT)
    assert {key for key in have if have[key] != lack[key]} == {"attention", "input_feeding"}
    assert lack["attention"] == "none"


@pytest.fixture
def results():
    """Without attention, all but short sentences come out wrong."""
    wrong = [
        line if len(source.split()) < 2 else "one two three" for source, line in zip(SOURCES, REFERENCES, strict=True)
    ]
    return [result(bottleneck.WITH, REFERENCES), result(bottleneck.WITHOUT, wrong)]


def test_a_gap_is_the_difference_of_the_bleu_scores_of_one_third(results):
    found = bottleneck.gaps(results, TEST)
    assert found["gap_short"] == pytest.approx(0.0)
    assert found["gap_long"] == pytest.approx(100 - bleu(["one two three"] * 2, REFERENCES[:2]).score)
    assert found["gap_middle"] == pytest.approx(100 - bleu(["one two three"] * 3, REFERENCES[:3]).score)


def test_what_is_lost_is_the_gap_as_a_share_of_the_bleu_with_attention(results):
    found = bottleneck.gaps(results, TEST)
    for part in bottleneck.PARTS:  # with attention every sentence is right: BLEU is 100
        assert found[f"lost_{part}"] == pytest.approx(found[f"gap_{part}"] / 100)


def test_without_both_rows_there_is_no_gap(results):
    assert bottleneck.gaps(results[:1], TEST) == {}


def test_the_report_says_whether_the_gap_grows(results, tmp_path):
    for one in results:
        (tmp_path / one.name).mkdir()
        (tmp_path / one.name / "training.jsonl").touch()
    report = bottleneck.report(results, TEST, Plan(MULTI30K), tmp_path)
    assert report.figures["gap_long"] > report.figures["gap_short"]
    assert "the gap grows" in report.contents.findings[0]
    assert "(1 to 1 words)" in report.contents.findings[0]
    assert f"{bottleneck.WITH} is better than {bottleneck.WITHOUT}" in report.contents.findings[2]
    assert 0 < report.figures[f"{bottleneck.WITH} over {bottleneck.WITHOUT}: p"] <= 1
    assert report.figures["gap_long over gap_short: p"] == pytest.approx(1 / 1001)
    assert report.contents.findings[1].startswith("Without attention 0% of the BLEU is lost on the shortest third")
    assert "the loss grows (p < 0.001)" in report.contents.findings[1]
    lines = report.contents.figures[0].series
    assert [line.name for line in lines] == [bottleneck.WITH, bottleneck.WITHOUT]
    assert [(point.x, round(point.y)) for point in lines[0].points] == [
        (16 / 6, 100),
        (9.0, 100),
    ]  # up to 7 words, 8 to 9
    turned = [result(bottleneck.WITHOUT, results[0].outputs), result(bottleneck.WITH, results[1].outputs)]
    assert "does not grow" in bottleneck.report(turned, TEST, Plan(MULTI30K), tmp_path).contents.findings[0]
