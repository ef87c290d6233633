"""Table 3: rows by the paper's ratios, and directions compared with the paper's."""

import pytest
import torch
from made_up import result

from regard.recipe.build import build
from regard.recipe.presets import choose
from regard.recipe.recipe import parse, with_settings
from regard.studies import table3
from regard.studies.report import TestSet
from regard.studies.rows import MULTI30K, Plan
from regard.studies.table3 import Direction, direction

BASE = result("base", ppl=8.0, dev=30.0)
TEST = TestSet(["a"], ["a"])
PLAN = Plan(MULTI30K)


def recipe(row):
    return parse(with_settings(choose([], row.preset), row.settings), row.name)


def sizes(row):
    o = recipe(row).model
    return (o.heads, o.head_width or o.width // o.heads, o.encoder_layers, o.width, o.feedforward, o.dropout)


def test_the_base_has_the_papers_ratios_between_its_own_sizes():
    heads, d_k, _, d_model, d_ff, dropout = sizes(table3.ROWS[0])
    assert (heads, d_k * heads, d_ff, dropout) == (8, d_model, 4 * d_model, 0.1)
    assert recipe(table3.ROWS[0]).model.positions == "sinusoid"
    assert recipe(table3.ROWS[0]).loss.smoothing == 0.1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("heads-1", (1, 192, 3, 192, 768, 0.1)),
        ("heads-32", (32, 6, 3, 192, 768, 0.1)),
        ("d_k-16", (8, 6, 3, 192, 768, 0.1)),
        ("N-2", (8, 24, 1, 192, 768, 0.1)),
        ("N-8", (8, 24, 4, 192, 768, 0.1)),
        ("d_model-1024", (8, 48, 3, 384, 768, 0.1)),
        ("d_ff-4096", (8, 24, 3, 192, 1536, 0.1)),
        ("dropout-0.2", (8, 24, 3, 192, 768, 0.2)),
    ],
)
def test_a_row_is_to_our_base_what_the_papers_is_to_its_own(name, expected):
    (row,) = [row for row in table3.ROWS if row.name == name]
    assert sizes(row) == expected


def test_every_row_can_be_built_and_no_two_are_the_same():
    recipes = [recipe(row) for row in table3.ROWS]
    assert len({one.model_dump_json() for one in recipes}) == len(table3.ROWS) == 19
    for one in recipes:
        with torch.device("meta"):
            build(one.model, 9, 9, shared=True, seed=1)


def test_less_perplexity_and_more_bleu_are_better_and_rounding_decides_what_is_equal():
    assert direction(7.9, 8.0, less=True, decimals=2) == 1
    assert direction(8.1, 8.0, less=True, decimals=2) == -1
    assert direction(8.001, 8.0, less=True, decimals=2) == 0
    assert direction(30.2, 30.0, less=False, decimals=1) == 1
    assert direction(29.9, 30.0, less=False, decimals=1) == -1
    assert direction(30.04, 30.0, less=False, decimals=1) == 0


def test_directions_of_a_row_are_those_of_its_figures_here_and_there():
    heads_16 = next(one for one in table3.VARIATIONS if one.row.name == "heads-16")  # there: 4.91 < 4.92, 25.8 = 25.8
    ppl, bleu = table3.directions(heads_16, result("heads-16", ppl=8.5, dev=31.0), BASE)
    assert ppl == Direction("heads-16", "PPL", ours=-1, paper=1, change=0.5)
    assert bleu == Direction("heads-16", "BLEU", ours=1, paper=0, change=1.0)
    assert not ppl.agrees
    assert not bleu.counts
    assert ppl.sentence == "heads-16: PPL worse (+0.50), in the paper better"


def report(*results, rows, plan=PLAN):
    for one in results:
        (rows / one.name).mkdir()
        (rows / one.name / "training.jsonl").touch()
    return table3.report(results, TEST, plan, rows)


def test_agreements_are_counted_and_disagreements_named(tmp_path):
    found = report(
        BASE,
        result("heads-1", ppl=9.0, dev=29.0),  # both worse, as in the paper
        result("d_ff-4096", ppl=7.0, dev=29.0),  # there both better
        result("learned-positions", ppl=9.0, dev=29.0),  # there PPL is equal, BLEU worse
        rows=tmp_path,
    )
    assert {name: value for name, value in found.figures.items() if ":" not in name} == {
        "directions": 5,
        "agreements": 4,
        "agreements_ppl": 2,
        "agreements_bleu": 2,
    }
    assert found.contents.findings[0].startswith("4 of 5 directions")
    assert found.contents.findings[1:] == ("Disagrees: d_ff-4096: BLEU worse (-1.00), in the paper better.",)
    marks = [(row[3], row[6]) for row in found.contents.tables[0].rows]
    assert marks == [("", ""), ("✓", "✓"), ("✓", "✗"), ("·", "✓")]


def test_a_chart_has_both_lines_through_the_base(tmp_path):
    found = report(BASE, result("heads-1", ppl=9.0, dev=29.0), rows=tmp_path)
    ppl, bleu, _ = found.contents.figures
    ours, paper = ppl.series
    assert [(point.x, round(point.y, 4)) for point in ours.points] == [(0.125, 12.5), (1.0, 0.0)]
    assert [(point.x, round(point.y, 2)) for point in paper.points] == [(0.125, 7.52), (1.0, 0.0)]
    assert [(point.x, point.y) for point in bleu.series[0].points] == [(0.125, -1.0), (1.0, 0.0)]


def test_without_its_base_a_table_has_rows_and_no_directions(tmp_path):
    found = report(result("heads-1"), rows=tmp_path)
    assert found.contents.findings == ()
    assert found.figures["agreements"] == found.figures["directions"] == 0
    assert len(found.contents.tables) == 1


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (PLAN, "in which a larger model takes fewer steps"),
        (Plan(MULTI30K, budget=None, steps=700), "a larger model had more minutes"),
    ],
)
def test_the_page_says_what_was_equal_for_all_rows(tmp_path, plan, told):
    assert told in " ".join(report(BASE, rows=tmp_path, plan=plan).contents.notes)
