"""Table 2: the published figures, who is compared with whom, and what chance says of it."""

import pytest
from made_up import result

from regard.evaluation import significance
from regard.evaluation.significance import paired
from regard.recipe.lineup import LINEUP
from regard.studies import table2
from regard.studies.ladder import ladder_of, rung
from regard.studies.report import TestSet
from regard.studies.rows import MULTI30K, Plan

REFERENCES = [f"the cat number {i} sits on a mat" for i in range(12)]
TEST = TestSet([f"die Katze {i}" for i in range(12)], REFERENCES)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(significance, "RESAMPLES", 50)
    monkeypatch.setattr(significance, "TRIALS", 50)


def spoilt(every: int) -> list[str]:
    """The references, every so many of them with a wrong word."""
    return [line.replace("cat", "dog") if i % every == 0 else line for i, line in enumerate(REFERENCES)]


@pytest.fixture
def results():
    """Worse in the order of the ladder turned round; the convolutions lie between the upper two."""
    return [
        result("transformer", spoilt(6), dev=40.0),
        result("rnn", spoilt(1), dev=10.0),
        result("bidirectional-gru", spoilt(2), dev=20.0),
        result("bytenet", spoilt(3), dev=30.0),
    ]


def test_every_model_of_the_lineup_but_the_students_is_a_row():
    assert sorted(row.name for row in table2.ROWS) == sorted(name for name in LINEUP if name != "fast")
    assert [row.name for row in table2.ROWS[:2]] == ["bidirectional-gru", "transformer"]  # trained side by side
    assert set(table2.PUBLISHED) <= set(LINEUP)


def test_every_row_is_compared_with_the_next_better_one_on_the_dev_set(results):
    pairs = [(lower.name, upper.name) for lower, upper in table2.pairs_of(results)]
    assert pairs == [("bytenet", "transformer"), ("bidirectional-gru", "bytenet"), ("rnn", "bidirectional-gru")]


def test_the_ladder_goes_up_from_no_attention_and_has_only_rungs_that_are_there(results):
    pairs = [(lower.name, upper.name) for lower, upper in ladder_of(results, table2.LADDER)]
    assert pairs == [("rnn", "bidirectional-gru"), ("bidirectional-gru", "transformer")]
    assert ladder_of([r for r in results if r.name != "bidirectional-gru"], table2.LADDER) == []


def test_a_rung_has_sacrebleus_own_figures(results):
    lower, upper = results[2], results[0]
    found, expected = rung(lower, upper, TEST), paired(lower.outputs, upper.outputs, REFERENCES, "bleu")
    assert found.gain == expected.b.score - expected.a.score > 0
    assert (found.bootstrap, found.randomisation) == (expected.bootstrap.p, expected.randomisation.p)
    assert "transformer is better than bidirectional-gru: +" in found.sentence
    assert "rnn is not better than transformer: -" in rung(upper, results[1], TEST).sentence


def test_the_report_has_every_row_best_first_and_every_published_system(results, tmp_path):
    for one in results:
        (tmp_path / one.name).mkdir()
        (tmp_path / one.name / "training.jsonl").touch()
    report = table2.report(results, TEST, Plan(MULTI30K), tmp_path)
    rows, beside, chances = report.contents.tables
    assert [row[0] for row in rows.rows] == ["transformer", "bytenet", "bidirectional-gru", "rnn"]
    assert beside.rows[1] == ("bytenet", "29.00", "1.0e+12", "ByteNet", "23.75", "", "", "")
    assert {row[3] for row in beside.rows} >= {one.system for one in table2.WITHOUT_OURS}
    assert len(chances.rows) == 4  # three neighbours and the rung that is not between neighbours
    assert len(report.contents.findings) == 2
    assert report.figures["transformer: dev BLEU"] == 40.0
    assert report.figures["bidirectional-gru over rnn: BLEU"] > 0
    assert 0 < report.figures["bidirectional-gru over rnn: p"] <= 1
    assert 0 < report.figures["bidirectional-gru over rnn: p, bootstrap"] <= 1
