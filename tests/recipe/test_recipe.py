import pytest
import yaml

from regard.errors import RecipeError
from regard.recipe.models import RecurrentOptions
from regard.recipe.recipe import Recipe, overlay, parse, parse_setting, read_tree, to_yaml, with_settings

DATA = {"data": {"corpora": [{"source": "a", "target": "b"}]}}


def message(tree):
    with pytest.raises(RecipeError) as error:
        parse(tree, "recipe.yaml")
    return str(error.value)


def test_a_misspelt_key_is_answered_with_its_path_and_the_nearest_key():
    assert message({**DATA, "model": {"widht": 64}}) == "recipe.yaml: model.widht: unknown key; did you mean 'width'?"
    assert "data.corpora.0.sorce: unknown key; did you mean 'source'?" in message(
        {"data": {"corpora": [{"sorce": "a"}]}}
    )
    assert "trainig: unknown key; did you mean 'training'?" in message({**DATA, "trainig": {}})


def test_a_key_unlike_any_other_is_answered_with_all_keys():
    assert "known keys: guided, guided_head, guided_layer, guided_step, rdrop, smoothing" in message(
        {**DATA, "loss": {"zzzzzz": 1}}
    )


def test_keys_of_another_family_are_unknown_to_this_one():
    assert "model.coverage: unknown key" in message({**DATA, "model": {"kind": "transformer", "coverage": True}})
    assert "model.positions: unknown key" in message({**DATA, "model": {"kind": "recurrent", "positions": "none"}})


def test_a_value_of_the_wrong_kind_names_its_path_and_what_was_found():
    found = message({**DATA, "model": {"width": -3}})
    assert "model.width" in found
    assert "-3" in found
    assert "model.kind" in message({**DATA, "model": {"kind": "bird"}}) or "model" in message(
        {**DATA, "model": {"kind": "bird"}}
    )


def test_a_section_that_is_missing_is_named():
    assert message({}) == "recipe.yaml: data: missing"


def test_a_setting_is_a_path_and_a_yaml_value():
    assert parse_setting("model.width=64") == (["model", "width"], 64)
    assert parse_setting("a.b=[1, x]") == (["a", "b"], [1, "x"])
    assert parse_setting("training.budget=20m") == (["training", "budget"], "20m")


@pytest.mark.parametrize("wrong", ["model.width", "=3", "a..b=3", "a.b=[1"])
def test_a_setting_without_path_or_value_is_refused(wrong):
    with pytest.raises(RecipeError, match="--set"):
        parse_setting(wrong)


def test_settings_lie_over_the_file_and_the_last_wins():
    tree = with_settings({**DATA, "model": {"width": 8, "heads": 2}}, ["model.width=16", "model.width=32"])
    assert tree["model"] == {"width": 32, "heads": 2}


def test_overlaying_leaves_both_trees_as_they_were():
    below, above = {"a": {"x": 1}}, {"a": {"y": 2}}
    assert overlay(below, above) == {"a": {"x": 1, "y": 2}}
    assert below == {"a": {"x": 1}}
    assert above == {"a": {"y": 2}}


def test_a_recipe_survives_the_journey_through_yaml():
    recipe = parse({**DATA, "model": {"kind": "recurrent", "cell": "lstm"}, "training": {"budget": "20m"}}, "here")
    assert isinstance(recipe.model, RecurrentOptions)
    assert recipe.training.budget == 1200
    assert Recipe.model_validate(yaml.safe_load(to_yaml(recipe))) == recipe


def test_a_file_that_is_no_recipe_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="no such recipe"):
        read_tree(tmp_path / "none.yaml")
    for content, reason in [
        ("- 1\n- 2\n", r"found \[1, 2\]"),
        ("a: [", "not YAML"),
        ("!!python/object:os.system {}", "not YAML"),
    ]:
        (tmp_path / "r.yaml").write_text(content)
        with pytest.raises(RecipeError, match=reason):
            read_tree(tmp_path / "r.yaml")
    (tmp_path / "r.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(RecipeError, match="cannot be read"):
        read_tree(tmp_path / "r.yaml")


def test_a_retired_key_that_changed_nothing_is_passed_over(tmp_path):
    """Recipes of earlier models have every default written out."""
    path = tmp_path / "r.yaml"
    path.write_text("loss: {rdrop_from: 0, rdrop: 5}\ntraining: {dropout_epochs: 0.0}\n")
    assert read_tree(path) == {"loss": {"rdrop": 5}, "training": {}}
    path.write_text("loss: {rdrop_from: 2}\n")
    assert read_tree(path) == {"loss": {"rdrop_from": 2}}  # for `parse` to refuse


def test_a_misspelt_family_is_answered_with_the_nearest():
    assert message({**DATA, "model": {"kind": "transfomer"}}).endswith("did you mean 'transformer'?")


def test_learned_positions_must_reach_as_far_as_the_text():
    short = {"positions": "learned", "max_length": 300}
    assert "model.max_length: 300" in message({**DATA, "model": short})
    assert parse({**DATA, "model": short, "decoding": {"cap": 300}}, "here").model.max_length == 300
