"""Runs that cannot go on as they began are refused, by name of what has changed."""

import json
import shutil

import pytest
from tiny_runs import options


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, corpus):
    """A run that was interrupted after two of four steps, beside its text."""
    from regard.run import Request, run

    folder = tmp_path_factory.mktemp("stopped")
    shutil.copytree(corpus, folder / "texts")
    settings = tuple(options("training.save_every=2")[1::2])
    request = Request(
        source=folder / "texts" / "train.source",
        target=folder / "texts" / "train.target",
        valid_source=folder / "texts" / "test.source",
        valid_target=folder / "texts" / "test.target",
        out=folder / "m",
        steps=4,
        settings=settings,
        quiet=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.run.finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(request)
    shutil.rmtree(folder / "m" / "checkpoints" / "step-00000004")
    return folder


def interrupted(*_arguments):
    raise KeyboardInterrupt


@pytest.fixture
def run(stopped, tmp_path):
    """A copy of the run; its text is where the recipe says, and comes back after the test."""
    kept = shutil.copytree(stopped / "texts", tmp_path / "kept")
    yield shutil.copytree(stopped / "m", tmp_path / "m")
    shutil.copytree(kept, stopped / "texts", dirs_exist_ok=True)


def test_the_run_itself_can_go_on(regard, run):
    ended = regard("train", "--resume", run, "--quiet")
    assert (ended.code, ended.err) == (0, "")
    regard("train", "--resume", run).refused("finished", "nothing to resume")


def test_what_is_no_run_is_refused(regard, model, tmp_path):
    (tmp_path / "empty").mkdir()
    regard("train", "--resume", tmp_path / "empty").refused("empty", "no run to resume")
    regard("train", "--resume", tmp_path / "none").refused("none", "no run to resume")
    regard("train", "--resume", model).refused("finished", "nothing to resume")


@pytest.mark.parametrize("name", ["recipe.yaml", "shared.json"])
def test_a_run_whose_recipe_or_tokeniser_changed_is_refused(regard, run, name):
    (run / name).write_text((run / name).read_text() + "\n")
    regard("train", "--resume", run).refused(name, "changed since this run began")
    assert not (run / "manifest.json").exists()


@pytest.mark.parametrize("name", ["train.source", "train.target", "test.source", "test.target"])
def test_a_run_whose_text_changed_is_refused(regard, run, stopped, name):
    path = stopped / "texts" / name
    path.write_text(path.read_text().replace("a", "b", 1).replace("A", "B", 1))
    regard("train", "--resume", run).refused("train.source", "another text")


def test_a_run_whose_text_is_gone_is_refused(regard, run, stopped):
    (stopped / "texts" / "train.target").unlink()
    regard("train", "--resume", run).refused("train.target", "no such file")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"began_with": {"files": 3, "text": "x"}}'])
def test_a_damaged_account_of_the_beginning_is_refused(regard, run, content):
    (run / "data.json").write_text(content)
    regard("train", "--resume", run).refused("data.json", "missing or damaged")
    (run / "data.json").unlink()
    regard("train", "--resume", run).refused("data.json", "missing or damaged")


def test_checkpoints_that_are_all_damaged_are_refused(regard, run):
    (step,) = (run / "checkpoints").glob("step-*")
    (step / "model.safetensors").write_bytes(b"")
    regard("train", "--resume", run, "--quiet").refused("model.safetensors", "changed since it was written")
    assert step.exists()


@pytest.mark.parametrize(
    ("others", "named"),
    [
        (("--out", "y"), "--out"),
        (("--steps", 9), "--steps"),
        (("--seed", 9), "--seed"),
        (("--set", "model.width=8"), "--set"),
        (("--tsv", "x"), "--tsv"),
        (("recipe.yaml",), "the recipe"),
        (("--source", "x", "--target", "y", "--budget", "1m"), "--source, --target, --budget"),
    ],
)
def test_resuming_takes_no_other_wishes(regard, run, others, named):
    regard("train", "--resume", run, *others).refused("goes on as it began", f"leave out {named}")


def test_the_account_notes_what_a_run_began_with(run):
    noted = json.loads((run / "data.json").read_text())["began_with"]
    assert sorted(noted["files"]) == ["recipe.yaml", "shared.json"]
