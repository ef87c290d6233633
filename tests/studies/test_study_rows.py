"""Rows of one plan share a folder, and nothing else may."""

import pytest

from regard.errors import RecipeError
from regard.studies.rows import agree, rates
from regard.training.options import TrainingOptions


def test_a_folder_keeps_its_first_plan(tmp_path):
    agree(tmp_path, {"texts": {}, "seed": 1})
    (tmp_path / "rows" / "base").mkdir(parents=True)
    agree(tmp_path, {"texts": {}, "seed": 1})
    with pytest.raises(RecipeError, match="another seed"):
        agree(tmp_path, {"texts": {}, "seed": 2})


def test_a_plan_that_no_row_began_with_gives_way(tmp_path):
    agree(tmp_path, {"texts": {}, "seed": 1})
    (tmp_path / "rows").mkdir()
    agree(tmp_path, {"texts": {}, "seed": 2})


def test_a_folder_of_something_else_is_not(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(RecipeError, match="not from a study"):
        agree(tmp_path, {"texts": {}, "seed": 1})


def test_a_row_says_every_rate_that_it_learned_with():
    assert rates(TrainingOptions(optimiser="adamw", learning_rate=0.003, rest_rate=3)) == "adamw 0.003"
    assert rates(TrainingOptions(optimiser="muon", learning_rate=0.006, rest_rate=3)) == "muon 0.006, rest 0.018"
    assert rates(TrainingOptions(optimiser="muon", learning_rate=0.006)) == "muon 0.006"
