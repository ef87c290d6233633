"""Model directories that are damaged, incomplete or not ours are refused by every command, in one line."""

import json
import pickle
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.files import write_manifest

FILES = ["README.md", "data.json", "model.safetensors", "recipe.yaml", "shared.json", "training.jsonl"]


@pytest.fixture
def copy(model, tmp_path):
    return shutil.copytree(model, tmp_path / "copy", ignore=shutil.ignore_patterns("checkpoints"))


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit_is_noticed_wherever_it_is(regard, copy, name):
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    regard("translate", copy).refused(name, "changed since it was written")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(regard, copy, name):
    (copy / name).unlink()
    regard("translate", copy).refused(name, "missing")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("manifest.json", "JSON")),
        (b"[]", ("manifest.json", "no list of files")),
        (b'{"format": 99, "files": {}}', ("format 99",)),
        (b'{"format": 1, "files": {"../../etc/passwd": "0"}}', ("not a plain file name",)),
        (b'{"format": 1, "files": {"README.md": "0"}}', ("README.md", "changed")),
    ],
)
def test_a_manifest_that_is_none_is_refused(regard, copy, content, words):
    (copy / "manifest.json").write_bytes(content)
    regard("translate", copy).refused(*words)


def test_what_is_no_model_directory_is_refused(regard, copy, tmp_path):
    (tmp_path / "empty").mkdir()
    for command in ("translate", "inspect"):
        regard(command, tmp_path / "nowhere").refused("nowhere", "no such model directory")
        regard(command, copy / "recipe.yaml").refused("recipe.yaml", "no such model directory")
        regard(command, tmp_path / "empty").refused("empty", "manifest.json")
    (copy / "manifest.json").unlink()
    regard("translate", copy).refused("manifest.json", "not finished")


def truncated(path):
    path.write_bytes(path.read_bytes()[:-10])


def pickled(path):
    path.write_bytes(pickle.dumps({"weights": [1.0]}))


def foreign(path):
    save_file({"other": torch.zeros(2)}, path)


def reshaped(path):
    save_file({name: tensor.flatten() for name, tensor in load_file(path).items()}, path)


def halved(path):
    save_file({name: tensor.half() for name, tensor in load_file(path).items()}, path)


def infinite(path):
    save_file({name: torch.full_like(tensor, torch.inf) for name, tensor in load_file(path).items()}, path)


@pytest.mark.parametrize("harm", [truncated, pickled, foreign, reshaped, halved, infinite])
def test_wrong_weights_are_refused_even_under_a_manifest_that_agrees(regard, copy, harm):
    harm(copy / "model.safetensors")
    write_manifest(copy, {})
    regard("translate", copy, stdin=b"ab\n").refused("model.safetensors")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: transformer", "kind: recurrent", ("recipe.yaml", "unknown key")),
        ("width: 32", "width: 64", ("model.safetensors", "the recipe makes it")),
        ("decoder_layers: 1", "decoder_layers: 2", ("model.safetensors", "no tensor")),
        ("heads: 4", "heads: 5", ("model.heads: 5",)),
        ("shared: true", "shared: false", ("no tokeniser", "source.model")),
        ("beam: 5", "beam: 0", ("recipe.yaml", "decoding.beam")),
        ("data:", "data: !!python/object/apply:os.getcwd []\nx:", ("recipe.yaml", "not YAML")),
    ],
)
def test_a_recipe_of_another_model_is_refused(regard, copy, old, new, words):
    text = (copy / "recipe.yaml").read_text()
    assert old in text
    (copy / "recipe.yaml").write_text(text.replace(old, new, 1))
    write_manifest(copy, {})
    regard("translate", copy, stdin=b"ab\n").refused(*words)


def test_a_retired_key_that_changed_nothing_is_passed_over(regard, copy):
    """Models of earlier versions have every default in their recipe."""
    recipe = copy / "recipe.yaml"
    said = regard("translate", copy, stdin=b"ab\n").lines
    older = recipe.read_text().replace("loss:\n", "loss:\n  rdrop_from: 0\n")
    older = older.replace("training:\n", "training:\n  dropout_epochs: 0.0\n")
    recipe.write_text(older)
    write_manifest(copy, {})
    assert regard("translate", copy, stdin=b"ab\n").lines == said
    for key, used in (("rdrop_from: 0", "rdrop_from: 5"), ("dropout_epochs: 0.0", "dropout_epochs: 2.5")):
        assert key in older
        recipe.write_text(older.replace(key, used))
        write_manifest(copy, {})
        regard("translate", copy).refused("recipe.yaml", key.partition(":")[0], "unknown key")


def test_a_recipe_of_another_family_meets_tensors_it_does_not_know(regard, copy):
    (copy / "recipe.yaml").write_text("data: {corpora: []}\ntext: {kind: characters}\nmodel: {kind: recurrent}\n")
    write_manifest(copy, {})
    regard("translate", copy, stdin=b"ab\n").refused("model.safetensors", "tensor")


@pytest.mark.parametrize("content", ["", "{", '{"kind": "birds"}', '{"kind": "characters", "characters": ["ab"]}'])
def test_a_tokeniser_that_is_none_is_refused(regard, copy, content):
    (copy / "shared.json").write_text(content)
    write_manifest(copy, {})
    regard("translate", copy, stdin=b"ab\n").refused("shared.json")


def test_a_vocabulary_of_another_size_does_not_fit_the_weights(regard, copy):
    (copy / "shared.json").write_text(json.dumps({"kind": "characters", "characters": ["a", "b"]}))
    write_manifest(copy, {})
    regard("translate", copy, stdin=b"ab\n").refused("model.safetensors")


def test_notes_beside_a_model_do_no_harm(regard, copy):
    (copy / "notes.txt").write_text("good with dates")
    assert regard("translate", copy, stdin=b"ab\n").code == 0
