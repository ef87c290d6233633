"""A tree that is written and read is the same tree, however its file is broken into lines; a broken one is named."""

import random

import pytest
from toy_trees import random_tree

from regard.errors import DataError
from regard.evaluation.trees import DEEPEST, Tree, read_tree, read_trees, retag, write_tree

CAT = Tree("S", (Tree("NP", (Tree("DT", word="the"), Tree("NN", word="cat"))), Tree("VP", (Tree("VB", word="sat"),))))


def trees(count, seed=0):
    rng = random.Random(seed)
    return [random_tree(rng, rng.randint(1, 12)) for _ in range(count)]


def chain(depth):
    tree = Tree("NN", word="x")
    for _ in range(depth):
        tree = Tree("A", (tree,))
    return tree


def test_a_tree_worked_by_hand():
    assert write_tree(CAT) == "(S (NP (DT the) (NN cat)) (VP (VB sat)))"
    assert read_tree("(S (NP (DT the) (NN cat)) (VP (VB sat)))") == CAT
    assert (CAT.words, CAT.tags, CAT.depth) == (["the", "cat", "sat"], ["DT", "NN", "VB"], 2)


def test_what_is_written_is_read_back():
    for tree in trees(100):
        assert read_tree(write_tree(tree)) == tree


def test_it_does_not_matter_where_the_lines_break():
    rng, every = random.Random(3), trees(60, seed=1)
    written = " ".join(map(write_tree, every)).replace("(", " ( ").replace(")", " ) ")
    broken = "".join(rng.choice([" ", "\n", "\t \n\n", "\r\n"]) if c == " " else c for c in written)
    assert list(read_trees(broken.split("\n"), "x")) == every


def test_words_come_in_the_order_in_which_they_are_written():
    for tree in trees(30):
        pairs = zip(tree.tags, tree.words, strict=True)
        written = write_tree(tree)
        assert [f"({tag} {word})" for tag, word in pairs] == [
            "(" + part.split(")")[0] + ")" for part in written.split("(") if ")" in part
        ]


def test_a_root_without_a_label_is_the_top():
    assert read_tree("( (S (NN x)))") == Tree("TOP", (Tree("S", (Tree("NN", word="x"),)),))
    assert read_tree("((S (NN x))\n(. .))").label == "TOP"


def test_brackets_in_words_are_written_as_the_treebank_writes_them():
    assert write_tree(Tree("NP", (Tree("NN", word="f(x)"),))) == "(NP (NN f-LRB-x-RRB-))"


def test_new_tags_change_nothing_but_the_tags():
    new = retag(CAT, ["A", "B", "C"])
    assert (new.tags, new.words) == (["A", "B", "C"], CAT.words)
    assert retag(new, CAT.tags) == CAT
    with pytest.raises(DataError, match="2 tags for 3 words"):
        retag(CAT, ["A", "B"])


def test_the_deepest_tree_is_read_written_and_compared_and_one_deeper_is_refused():
    text = "(A " * DEEPEST + "(NN x)" + ")" * DEEPEST
    tree = read_tree(text)
    assert tree.depth == DEEPEST
    assert write_tree(tree) == text
    assert tree == chain(DEEPEST)
    assert hash(tree) == hash(chain(DEEPEST))
    assert repr(tree) == repr(chain(DEEPEST))
    assert retag(tree, ["NN"]) == tree
    with pytest.raises(DataError, match=rf"deep, line 1: found more than {DEEPEST} nested"):
        read_tree("(A " * 100_000, "deep")
    with pytest.raises(DataError, match=f"{DEEPEST + 1} nested constituents"):
        chain(DEEPEST + 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP (NN a))\n(VP (VB b))", "f, line 1: a bracket opened here is never closed"),
        ("(S (NN a))\n(S\n(NN b)", "f, line 2: a bracket opened here is never closed"),
        ("(S (NN a))\n)", r"f, line 2: found \) where no bracket is open"),
        ("(S (NN a)) dog", "f, line 1: found 'dog' outside brackets"),
        ("\n\ndog (S (NN a))", "f, line 3: found 'dog' outside brackets"),
        ("(S ((NN a) (NN b)))", "f, line 1: found a constituent without a label"),
        ("(S ( ))", r"f, line 1: found \(\), expected a label"),
        ("()", r"f, line 1: found \(\), expected a label"),
        ("(S (NP))", r"f, line 1: found \(NP\), expected a word or constituents"),
        ("(S\n(NP a dog))", "f, line 2: found the word 'dog' without a tag"),
        ("(S (NN a)\ndog)", "f, line 2: found the word 'dog' without a tag"),
        ("(S (NN a (NN b)))", "f, line 1: found a bracket after the word 'a'"),
        ("", "f: found 0 trees, expected one"),
        ("(NN a) (NN b)", "f: found 2 trees, expected one"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text, message):
    with pytest.raises(DataError, match=message):
        read_tree(text, "f")


@pytest.mark.parametrize(
    ("label", "children", "word", "message"),
    [
        ("", (), "x", "found the label ''"),
        ("a b", (), "x", "found the label 'a b'"),
        ("(", (), "x", r"found the label '\('"),
        ("NP", (), None, "either children or a word"),
        ("NP", (Tree("A", word="x"),), "x", "either children or a word"),
        ("NP", (), "a b", "found the word 'a b'"),
        ("NP", (), "", "found the word ''"),
    ],
)
def test_no_tree_is_made_that_could_not_be_written(label, children, word, message):
    with pytest.raises(DataError, match=message):
        Tree(label, children, word)
