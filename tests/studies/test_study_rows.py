"""Rows of one plan share a folder, and nothing else may."""

import pytest

from regard.errors import RecipeError
from regard.studies.rows import agree


def test_a_folder_keeps_its_first_plan(tmp_path):
    agree(tmp_path, {"texts": {}, "seed": 1})
    (tmp_path / "rows").mkdir()
    agree(tmp_path, {"texts": {}, "seed": 1})
    with pytest.raises(RecipeError, match="another seed"):
        agree(tmp_path, {"texts": {}, "seed": 2})


def test_a_plan_that_no_row_began_with_gives_way(tmp_path):
    agree(tmp_path, {"texts": {}, "seed": 1})
    agree(tmp_path, {"texts": {}, "seed": 2})
    (tmp_path / "rows").mkdir()
    agree(tmp_path, {"texts": {}, "seed": 2})


def test_a_folder_of_something_else_is_not(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(RecipeError, match="not from a study"):
        agree(tmp_path, {"texts": {}, "seed": 1})
