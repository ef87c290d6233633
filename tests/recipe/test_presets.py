"""Sizes for someone who chose none."""

import pytest

from regard.data.pairs import Pair
from regard.recipe.folder import refuse_impossible
from regard.recipe.presets import choose
from regard.recipe.recipe import overlay, parse

DATA = {"data": {"corpora": [{"tsv": "x"}]}}
COUNTS = [1, 4_999, 5_000, 50_000, 100_000, 300_000]


def chosen(count, family):
    return parse(overlay(choose([Pair("a", "b")] * count, family), DATA), "here")


@pytest.mark.parametrize("family", ["transformer", "recurrent"])
def test_every_choice_is_a_possible_model_and_more_text_never_a_smaller_one(family):
    recipes = [chosen(count, family) for count in COUNTS]
    for recipe in recipes:
        assert recipe.model.kind == family
        refuse_impossible(recipe)
    widths = [recipe.model.width for recipe in recipes]
    assert widths == sorted(widths)
