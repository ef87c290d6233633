"""From text to a model directory that needs nothing else; the same seed gives the same bytes."""

import json
import shutil

import pytest
import yaml
from tiny_runs import TINY, options

import regard as package
from regard.recipe.folder import read_recipe
from regard.training.events import Finished, Started, Stepped, Validated
from regard.training.logs import read_log

FILES = [
    *("README.md", "data.json", "film.jsonl", "manifest.json", "model.safetensors", "recipe.yaml", "report.html"),
    *("shared.json", "training.jsonl"),
]


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_two_files_are_enough_for_a_model_that_needs_nothing_else(train, regard, corpus, tmp_path):
    texts = shutil.copytree(corpus, tmp_path / "texts")
    files = ("--source", texts / "train.source", "--target", texts / "train.target")
    ended = regard("train", *files, "--out", tmp_path / "new" / "m", "--steps", 3, "--quiet", *options())
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    made = tmp_path / "new" / "m"
    assert sorted(path.name for path in made.iterdir() if path.is_file()) == FILES
    said = regard("translate", made, stdin=b"ab cd\nde\n")
    shutil.rmtree(texts)
    shutil.rmtree(made / "checkpoints")
    moved = made.rename(tmp_path / "moved")
    assert regard("translate", moved, stdin=b"ab cd\nde\n") == said
    assert said.code == 0


def test_every_form_of_the_text_gives_the_same_model(train, regard, corpus, tmp_path):
    assert train(tmp_path / "two", "--steps", 3).code == 0
    lines = [(corpus / f"train.{side}").read_text().splitlines() for side in ("source", "target")]
    pairs = list(zip(*lines, strict=True))
    (tmp_path / "t.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    (tmp_path / "j.jsonl").write_text("".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in pairs))
    crlf = b"\xef\xbb\xbf" + "".join(f"{a}\r\n" for a, _ in pairs).encode()
    (tmp_path / "windows").write_bytes(crlf)
    recipe = {"data": {"corpora": [{"tsv": str(tmp_path / "t.tsv")}]}, "training": {"budget": "3h"}}
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(recipe))
    common = ("--steps", 3, "--quiet", *options())
    for name, arguments in {
        "tsv": ("--tsv", tmp_path / "t.tsv"),
        "jsonl": ("--jsonl", tmp_path / "j.jsonl"),
        "crlf": ("--source", tmp_path / "windows", "--target", corpus / "train.target"),
        "recipe": (tmp_path / "r.yaml",),
    }.items():
        ended = regard("train", *arguments, "--out", tmp_path / name, *common)
        assert (name, ended.code, ended.err) == (name, 0, "")
        assert weights(tmp_path / name) == weights(tmp_path / "two")
    assert read_recipe(tmp_path / "recipe").training.steps == 3
    assert read_recipe(tmp_path / "recipe").training.budget is None


def test_the_seed_decides_the_bytes(train, tmp_path):
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        assert train(tmp_path / name, "--steps", 4, "--seed", seed).code == 0
    assert weights(tmp_path / "one") == weights(tmp_path / "again")
    assert weights(tmp_path / "one") != weights(tmp_path / "two")


def test_the_card_and_the_report_tell_what_was_measured(model, corpus):
    card = (model / "README.md").read_text()
    validation = json.loads((model / "manifest.json").read_text())["validation"]
    for name in ("bleu", "chrf", "ter"):
        assert f"{validation[name]['score']:.2f} (`{validation[name]['signature']}`)" in card
    data = json.loads((model / "data.json").read_text())
    read = len((corpus / "train.source").read_text().splitlines())
    (account,) = data["corpora"]
    assert account["read"] == read
    assert account["kept"] + sum(account["dropped"].values()) == read
    assert data["validation"]["origin"] == "carved out of training"
    assert data["validation"]["kept"] == validation["sentences"] == read // 20
    assert "carved out of training" in card


def test_given_validation_text_is_used_whole(train, regard, corpus, tmp_path):
    given = ("--valid-source", corpus / "test.source", "--valid-target", corpus / "test.target")
    assert train(tmp_path / "m", "--steps", 2, *given).code == 0
    data = json.loads((tmp_path / "m" / "data.json").read_text())
    assert data["validation"]["origin"] == "given"
    assert data["validation"]["kept"] == 20
    files = ("--source", corpus / "test.source", "--target", corpus / "test.target")
    found = json.loads(regard("evaluate", tmp_path / "m", *files, "--json").out)
    told = json.loads((tmp_path / "m" / "manifest.json").read_text())["validation"]
    assert {name: found[name] for name in told} == told


def test_the_log_tells_one_story(model):
    events = read_log(model / "training.jsonl")
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    steps = [event.step for event in events if isinstance(event, Stepped)]
    assert steps == [1, *range(10, 121, 10)]
    validated = [event for event in events if isinstance(event, Validated)]
    assert [event.step for event in validated] == [60, 120]
    assert events[-1].scores == validated[-1].scores


def test_progress_is_on_stderr_unless_quiet_and_curves_are_written_when_asked(train, regard, corpus, tmp_path):
    files = ("--source", corpus / "train.source", "--target", corpus / "train.target", "--steps", 2)
    ended = regard("train", *files, "--out", tmp_path / "m", *options(), "--tensorboard")
    assert (ended.code, ended.out) == (0, "")
    assert "carved out of training" in ended.err
    assert "training is done" in ended.err
    assert list((tmp_path / "m" / "tensorboard").glob("events.*"))


def test_the_same_in_python(corpus, tmp_path):
    made = package.train(
        corpus / "train.source", corpus / "train.target", out=tmp_path / "m", settings=(*TINY, "training.steps=3")
    )
    texts = ["ab cd", "", "e"]
    found = made.translate(texts)
    assert [translation.source for translation in found] == texts
    assert found == package.load(tmp_path / "m").translate(texts)
    with pytest.raises(package.RegardError, match="already exists"):
        package.train(corpus / "train.source", corpus / "train.target", out=tmp_path / "m")
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


def test_sizes_follow_the_text_when_nobody_chose_them(regard, corpus, tmp_path):
    files = ("--source", corpus / "train.source", "--target", corpus / "train.target")
    recurrent = ("--set", "model.kind=recurrent", "--set", "model.embedding=8", "--set", "text.kind=bytes")
    assert regard("train", *files, "--out", tmp_path / "m", "--steps", 1, "--quiet", *recurrent).code == 0
    recipe = read_recipe(tmp_path / "m")
    assert (recipe.model.kind, recipe.model.width, recipe.model.embedding) == ("recurrent", 128, 8)
