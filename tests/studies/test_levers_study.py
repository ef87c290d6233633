"""What lifts quality: one thing at a time, judged by the dev set."""

import json

import torch
from made_up import result

from regard.data.pairs import Pair
from regard.recipe.build import build
from regard.recipe.presets import choose
from regard.recipe.recipe import parse, with_settings
from regard.studies import levers
from regard.studies.report import TestSet, write_report
from regard.studies.rows import MULTI30K, Plan

TEST = TestSet(["a"], ["a"])


def recipe(row):
    return parse(with_settings(choose([Pair("a", "b")] * 29_000, row.preset), row.settings), row.name)


def test_every_row_can_be_built_and_no_two_are_the_same():
    recipes = [recipe(row) for row in levers.ROWS]
    assert len({one.model_dump_json() for one in recipes}) == len(levers.ROWS)
    for one in recipes:
        with torch.device("meta"):
            build(one.model, 9, 9, shared=True, seed=1)


def told(*results, rows):
    for one in results:
        (rows / one.name).mkdir()
        (rows / one.name / "training.jsonl").touch()
    return levers.report(results, TEST, Plan(MULTI30K), rows)


def test_levers_stand_by_what_they_add_on_the_dev_set(tmp_path):
    dev = {"base": 30.0, "adamw": 29.0, "r-drop": 31.25, "cosine": 30.25}
    found = told(*(result(name, dev=score) for name, score in dev.items()), rows=tmp_path)
    table = found.contents.tables[0].rows
    assert [cells[0].partition(":")[0] for cells in table] == ["r-drop", "cosine", "base", "adamw"]
    assert table[0][0] == "r-drop: two passes that must agree"
    assert [cells[2] for cells in table] == ["+1.25", "+0.25", "+0.00", "-1.00"]
    (drawn,) = found.contents.figures
    assert [(bar.name, bar.value) for bar in drawn.rows] == [("r-drop", 1.25), ("cosine", 0.25), ("adamw", -1.0)]
    assert found.contents.findings == ("r-drop adds 1.25 BLEU to the default.",)
    assert found.figures["adamw: gain"] == -1.0
    assert not [name for name in found.figures if "test" in name]


def test_the_test_set_is_not_told_of(tmp_path):
    base = result("base")
    write_report(tmp_path, "levers", told(base, rows=tmp_path), [base], "regard study levers")
    assert json.loads((tmp_path / "study-levers.json").read_text())["rows"][0]["dev_bleu"] == 30.0
    for path in tmp_path.glob("study-levers.*"):
        assert "test_" not in path.read_text()


def test_levers_that_add_nothing_are_told_so(tmp_path):
    found = told(result("base", dev=30.0), result("cosine", dev=30.25), rows=tmp_path)
    assert found.contents.findings == ("No lever adds 1 BLEU or more to the default.",)


def test_without_the_base_there_is_nothing_to_add_to(tmp_path):
    found = told(result("cosine", dev=30.25), rows=tmp_path)
    assert found.contents.findings == ()
    assert found.contents.tables[0].rows[0][2] == ""
    assert found.contents.figures == ()
