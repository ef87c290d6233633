"""A treebank arrives whole: what is not learned from is validated with, and no sentence is on both sides."""

import gzip

import pytest
from pydantic import ValidationError
from toy_trees import toy_trees

from regard.data.options import TreebankOptions
from regard.data.trees import load_trees
from regard.errors import DataError
from regard.evaluation.trees import read_tree, write_tree


def write(path, trees):
    lines = "".join(f"{write_tree(tree)}\n" for tree in trees)
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    return path


def test_given_validation_trees_are_taken_as_they_are(tmp_path):
    trees = toy_trees(7, seed=1)
    one, two = write(tmp_path / "a.trees", trees[:2]), write(tmp_path / "b.trees.gz", trees[2:5])
    valid = write(tmp_path / "c.trees", trees[5:])
    loaded = load_trees(TreebankOptions(files=(one, two), valid=(valid,)), None, seed=0)
    assert loaded.training == trees[:5]
    assert loaded.validation == trees[5:]
    assert loaded.report.lines() == [f"{one} + {two}: 5 of 5 trees", f"{valid}: 2 of 2 trees (given)"]


def test_without_them_a_part_is_held_out_and_no_sentence_is_on_both_sides(tmp_path):
    trees = toy_trees(60, seed=2)
    loaded = load_trees(TreebankOptions(files=(write(tmp_path / "a.trees", trees),)), 6, seed=0)
    sides = [{" ".join(tree.words) for tree in side} for side in (loaded.training, loaded.validation)]
    assert len(sides[1]) == 6
    assert not sides[0] & sides[1]
    both = sorted(map(write_tree, [*loaded.training, *loaded.validation]))
    assert both == sorted(map(write_tree, trees))
    account = loaded.report.corpora[0]
    assert (account.read, account.kept, account.dropped) == (
        60,
        len(loaded.training),
        {"held out": len(loaded.validation)},
    )


def test_another_seed_holds_out_other_sentences(tmp_path):
    options = TreebankOptions(files=(write(tmp_path / "a.trees", toy_trees(60, seed=2)),))
    assert load_trees(options, 6, seed=0).validation != load_trees(options, 6, seed=1).validation


def test_a_file_is_found_beneath_the_data_folder(tmp_path, monkeypatch):
    write(tmp_path / "a.trees", [read_tree("(S (X a))"), read_tree("(S (X b))")])
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    loaded = load_trees(TreebankOptions(files=("a.trees",)), 1, seed=0)
    assert len(loaded.training) == len(loaded.validation) == 1


def test_what_is_no_treebank_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"data.trees: found no treebank"):
        load_trees(None, None, seed=0)
    with pytest.raises(ValidationError, match="files"):
        TreebankOptions(files=())
    with pytest.raises(DataError, match=r"nothing.trees: no such file"):
        load_trees(TreebankOptions(files=(tmp_path / "nothing.trees",)), None, seed=0)
    plain = tmp_path / "plain.txt"
    plain.write_text("The cat sleeps.\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"plain.txt, line 1: found 'The' outside brackets, expected \("):
        load_trees(TreebankOptions(files=(plain,)), None, seed=0)
