"""`regard train --preset`: a model of the line-up from two files."""

import pytest
from tiny_runs import options

import regard as package
from regard.recipe.folder import read_recipe

ANY = (
    "text.kind=characters",
    "data.batch_tokens=256",
    "training.validations=1",
    "decoding.cap=8",
    "training.threads=1",
)
SMALL = {
    "simple-attention": ("model.width=8", "model.embedding=8"),
    "parameterised-attention": ("model.width=8", "model.embedding=8"),
    "gnmt": ("model.width=8", "model.embedding=8"),
    "deep-att": ("model.width=8", "model.embedding=8"),
    "bytenet": ("model.width=16", "model.rates=[1,2]"),
    "convs2s": ("model.width=8", "model.encoder_layers=1"),
    "moe": ("model.width=8", "model.heads=2", "model.feedforward=8", "model.experts=3"),
}


def settings(*values):
    return [part for value in (*ANY, *values) for part in ("--set", value)]


@pytest.mark.parametrize("name", SMALL)
def test_a_preset_trains_speaks_and_goes_on_by_the_same_commands_as_all_others(name, regard, corpus, tmp_path):
    files = ("--source", corpus / "train.source", "--target", corpus / "train.target")
    ended = regard(
        "train", *files, "--out", tmp_path / "m", "--preset", name, "--steps", 3, "--quiet", *settings(*SMALL[name])
    )
    assert (ended.code, ended.err) == (0, "")
    recipe = read_recipe(tmp_path / "m")
    assert recipe.model.width == int(SMALL[name][0].partition("=")[2])  # settings lie over the preset
    assert recipe.training.schedule == "linear"  # and what they do not say is the preset's
    said = regard("translate", tmp_path / "m", stdin=b"ab cd\nde\n")
    assert (said.code, said.out.count("\n")) == (0, 2)


def test_a_setting_that_only_the_preset_knows_is_understood_before_the_text_is_read(regard, corpus, tmp_path):
    files = ("--source", corpus / "train.source", "--target", corpus / "train.target")
    ended = regard("train", *files, "--out", tmp_path / "m", "--preset", "gnmt", "--set", "model.heads=2")
    ended.refused("model.heads: unknown key")


def test_a_preset_and_a_recipe_are_refused_together(regard, tmp_path):
    (tmp_path / "r.yaml").write_text("data: {}")
    regard("train", tmp_path / "r.yaml", "--preset", "moe", "--out", tmp_path / "m").refused(
        "--preset moe", "r.yaml", "leave out"
    )


def test_a_run_goes_on_with_its_own_preset(regard, train, tmp_path):
    regard("train", "--resume", tmp_path / "m", "--preset", "moe").refused("--resume", "leave out --preset")


def test_python_takes_a_preset_too(corpus, tmp_path):
    small = [*ANY, *SMALL["convs2s"], "training.steps=2"]
    engine = package.train(
        corpus / "train.source", corpus / "train.target", out=tmp_path / "m", preset="convs2s", settings=small
    )
    assert engine.folder.recipe.model.kind == "convs2s"


def test_an_unknown_preset_is_a_mistake_of_usage(regard, tmp_path):
    ended = regard("train", "--preset", "gnmd", "--out", tmp_path / "m", *options())
    assert ended.code == 2
    assert "gnmt" in ended.err
