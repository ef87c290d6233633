"""What lifts quality: one thing at a time, judged by the dev set."""

import json
import random

import pytest
import torch
from made_up import result

from regard.data.pairs import Pair
from regard.errors import RecipeError
from regard.recipe.build import build
from regard.recipe.presets import choose
from regard.recipe.recipe import parse, with_settings
from regard.studies import levers
from regard.studies.report import TestSet, write_report
from regard.studies.rows import MULTI30K, Plan, Texts
from regard.text.options import TextOptions

TEST = TestSet(["a"], ["a"])


SIZES = (3_000, 29_000, 200_000, 500_000, 1_000_000)


def tree_of(pairs):
    return choose([Pair("a", "b")] * pairs, "transformer")


def recipes(tree, pairs):
    rows = levers.fitting(tree, [Pair("abcd", "efgh")] * pairs)
    return {row.name: parse(with_settings(tree, row.settings), row.name) for row in rows}


@pytest.mark.parametrize("pairs", SIZES)
def test_every_row_can_be_built_and_no_two_are_the_same(pairs):
    found = recipes(tree_of(pairs), pairs)
    assert len({one.model_dump_json() for one in found.values()}) == len(found) >= 19
    for one in found.values():
        with torch.device("meta"):
            build(one.model, 9, 9, shared=True, seed=1)
    for name in found:
        assert levers.said(name).startswith(f"{name}: ")


@pytest.mark.parametrize("pairs", SIZES)
def test_a_lever_is_what_it_says_for_any_amount_of_text(pairs):
    found = recipes(tree_of(pairs), pairs)
    base = found["base"]
    assert found["wider"].model.width / base.model.width == pytest.approx(4 / 3, rel=0.02)
    assert found["narrower"].model.width / base.model.width == pytest.approx(2 / 3, rel=0.04)
    assert found["narrower"].model.encoder_layers == base.model.encoder_layers + 1
    rates = [one.training.learning_rate for name, one in found.items() if name.startswith("rate-")]
    assert rates == [pytest.approx(base.training.learning_rate / 2)]
    decays = [one.training.weight_decay for name, one in found.items() if name.startswith("decay-")]
    assert decays == [decay for decay in (0.01, 0.3, 1) if decay != base.training.weight_decay]
    batches = [one.data.batch_tokens for name, one in found.items() if name.startswith("batch-")]
    assert batches == [base.data.batch_tokens // 2, 2 * base.data.batch_tokens]
    assert sorted(one.model.dropout for name, one in found.items() if name.startswith("dropout-")) == pytest.approx(
        [base.model.dropout - 0.1, base.model.dropout + 0.1]
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, (4_000, 15_000)),  # 4 special, 256 bytes, 7 characters, a blank once more, 7,200 pieces of more: 7,468
        ({"size": 2_000}, (1_100, 4_000)),  # 1,732 pieces, of which half are left out
        ({"size": 300}, (300, 600)),  # 32 pieces: the same as the base, and left out there
        ({"byte_fallback": False, "size": 51}, (30, 100)),  # without bytes 39 pieces; 32 is near 30
    ],
)
def test_vocabularies_are_twice_as_large_and_have_half_the_pieces(asked, expected):
    pairs = [Pair("abc " * 10_000, "def " * 10_000)] * 50
    found = levers.vocabularies(TextOptions(**asked), pairs)
    assert found == {f"vocabulary-{size}": (f"text.size={size}",) for size in expected}


@pytest.mark.parametrize(("words", "there"), [(30, [600]), (2_000, [600, 2_000])])
def test_a_vocabulary_that_the_text_is_too_short_for_is_no_row(tmp_path, words, there):
    """Thirty words have not two thousand pieces: said before the first row is trained."""
    drawn = random.Random(1)
    lines = ["".join(drawn.choices("abcdefgh", k=8)) for _ in range(words)]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    plan = Plan(Texts(*[tmp_path / "text"] * 6), settings=("text.size=1000",))
    found = [row.settings[0] for row in levers.rows(plan) if row.name.startswith("vocabulary-")]
    assert found == [f"text.size={size}" for size in there]


def test_the_rows_of_thirty_thousand_pairs_have_the_numbers_of_the_published_figures():
    """The names that results/study-levers.md has, but for its vocabularies; for a run as long as the text asks for."""
    found = recipes(tree_of(29_000), 29_000)
    named = {
        "dropout-0.1",
        "dropout-0.3",
        "rate-0.003",
        "batch-1000",
        "batch-4000",
        "decay-0.01",
        "wider",
        "deep-shallow",
    }
    assert named <= set(found)
    shapes = {name: found[name].model for name in ("wider", "narrower", "deep-shallow")}
    assert (shapes["wider"].width, shapes["wider"].feedforward) == (256, 1024)
    assert (shapes["narrower"].width, shapes["narrower"].feedforward, shapes["narrower"].decoder_layers) == (
        128,
        256,
        4,
    )
    assert (shapes["deep-shallow"].encoder_layers, shapes["deep-shallow"].decoder_layers) == (6, 1)


def test_what_would_change_nothing_is_left_out():
    settings = ("model.positions=sinusoid", "training.ema=0", "text.kind=characters", "model.dropout=0")
    found = recipes(with_settings(tree_of(29_000), settings), 29_000)
    gone = {"sinusoids", "last-weights", "subword-sampling", "dropout-0"}
    assert not gone & set(found)
    assert not [name for name in found if name.startswith("vocabulary")]
    assert "mean-of-5" in found


def test_levers_of_another_model_are_refused():
    with pytest.raises(RecipeError, match=r"model\.kind=recurrent.*transformer"):
        levers.fitting({"data": {}, "model": {"kind": "recurrent"}}, [Pair("a", "b")])


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
