"""Wishes that cannot be met: the option or the key is named, nothing is written."""

import pytest

IMPOSSIBLE = {  # setting → words of the answer
    ("model.widht=64",): ("model.widht", "did you mean 'width'?"),
    ("model.heads=3",): ("model.heads: 3 does not divide model.width 32",),
    ("model.width=-1",): ("model.width", "greater than 0"),
    ("model.width=33", "model.heads=3"): ("model.width: 33 is odd",),
    ("model.width=100000000000", "model.heads=1"): ("model", "memory"),
    ("text.kind=bpe", "text.size=30000"): ("text.size: 30000 is larger than this text allows",),
    ("text.kind=bpe", "text.size=20"): ("text.size: 20 is too small",),
    ("training.budget=soon",): ("training.budget", "'soon' is not a duration"),
    ("training.epochs=3",): ("steps and epochs",),
    ("training.warmup=50",): ("warmup",),
    ("data.filters.max_ratio=0",): ("data.filters.max_ratio",),
    ("model=5",): ("model", "5"),
    ("model.width",): ("--set model.width", "section.key=value"),
    ("decoding.n_best=9",): ("decoding", "n_best: 9"),
    ("model.kind=wombat",): ("model", "wombat", "transformer"),
}
RECURRENT = {
    ("attention=dot",): ("model.attention: dot needs an encoder as wide as the decoder",),
    ("attention=none",): ("model.input_feeding: needs attention",),
    ("attention=general", "coverage=true"): ("model.coverage: enters additive scores only",),
    ("shared_cell=true", "bidirectional=false"): ("model.shared_cell: input feeding",),
    ("tie_output=true", "embedding=8"): ("model.tie_output", "model.embedding must be 16"),
}


@pytest.mark.parametrize("settings", IMPOSSIBLE, ids=" ".join)
def test_an_impossible_recipe_is_refused_with_its_key(train, tmp_path, settings):
    train(tmp_path / "m", "--steps", 9, settings=settings).refused(*IMPOSSIBLE[settings])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", RECURRENT, ids=" ".join)
def test_an_impossible_recurrent_model_is_refused_with_its_key(regard, corpus, tmp_path, settings):
    files = ("--source", corpus / "train.source", "--target", corpus / "train.target", "--out", tmp_path / "m")
    asked = [f"model.{setting}" for setting in ("kind=recurrent", "width=16", *settings)]
    regard("train", *files, *(part for one in asked for part in ("--set", one))).refused(*RECURRENT[settings])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- a\n- b\n", ("found ['a', 'b']",)),
        ("model: [", ("not YAML",)),
        ("1: 2\n", ("found {1: 2}",)),
        ("data:\n  corpora: 5\n", ("data.corpora",)),
        ("[" * 1000, ("not YAML",)),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nmodel: {width: [*c,*c]}\n", ("model.width",)),
        ("data: {corpora: [" + "{}," * 50 + "]}", ("and 47 more",)),
    ],
    ids=["list", "cut", "number", "type", "deep", "aliases", "many"],
)
def test_a_file_that_is_no_recipe_is_one_line(regard, tmp_path, content, words):
    (tmp_path / "recipe.yaml").write_text(content)
    ended = regard("train", tmp_path / "recipe.yaml", "--out", tmp_path / "m")
    ended.refused("recipe.yaml", *words)
    assert len(ended.err) < 1000


def test_aliases_do_not_make_a_small_file_a_long_answer(regard, tmp_path):
    levels = [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 25)]
    (tmp_path / "bomb.yaml").write_text("\n".join(["a0: &a0 [x]", *levels, "model: {width: *a24}"]))
    ended = regard("train", tmp_path / "bomb.yaml", "--out", tmp_path / "m")
    ended.refused("bomb.yaml", "unknown key")
    assert len(ended.err) < 1000


def test_what_is_missing_or_contradictory_is_said_in_options(regard, corpus, model, tmp_path):
    files = ("--source", corpus / "train.source", "--target", corpus / "train.target")
    regard("train").refused("--source and --target", "regard demo")
    regard("train", "--out", tmp_path / "m").refused("--source and --target", "regard demo")
    regard("train", *files).refused("--out", "models/en-de")
    regard("train", *files[:2], "--out", tmp_path / "m").refused("--source: given without --target")
    regard("train", *files[2:], "--out", tmp_path / "m").refused("--target: given without --source")
    lone = ("--valid-source", corpus / "test.source")
    regard("train", *files, *lone, "--out", tmp_path / "m").refused("--valid-source: given without --valid-target")
    regard("train", *files, "--tsv", "x", "--out", tmp_path / "m").refused("x: no such file")
    regard("train", tmp_path / "no.yaml", "--out", tmp_path / "m").refused("no such recipe")
    regard("train", *files, "--steps", 0, "--out", tmp_path / "m").refused("training.steps", "greater than 0")
    regard("train", *files, "--steps", 3, "--epochs", 2, "--out", tmp_path / "m").refused("steps and epochs")
    assert not list(tmp_path.iterdir())


def test_what_stands_in_the_way_is_left_alone(train, model, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    (tmp_path / "file").write_text("mine")
    train(tmp_path / "full", "--steps", 1).refused("full", "already exists", "--resume")
    train(tmp_path / "file", "--steps", 1).refused("file", "already exists")
    train(tmp_path / "file" / "m", "--steps", 1).refused("file/m", "not written")
    train("/proc/m", "--steps", 1).refused("/proc/m", "not written")
    assert (tmp_path / "full" / "note").read_text() == (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "note"]


@pytest.mark.parametrize("moment", ["regard.training.logs.JsonLog.read", "regard.run.write_recipe"])
def test_a_full_disk_is_one_line_and_no_half_model(train, tmp_path, monkeypatch, moment):
    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(moment, full)
    train(tmp_path / "m", "--steps", 1).refused("No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_at_the_end_leaves_a_run_to_resume(train, regard, tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("regard.run.write_card", full)
        train(tmp_path / "m", "--steps", 1).refused("No space left on device")
    assert regard("train", "--resume", tmp_path / "m", "--quiet").code == 0
    assert regard("translate", tmp_path / "m").code == 0
