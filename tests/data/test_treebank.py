"""A tree becomes a pair of texts and comes back whole; symbols that are no tree are refused with their place."""

import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from toy_trees import random_tree, treebank

from regard.data.pairs import Pair
from regard.data.treebank import (
    NUMBERS,
    normalise,
    outermost,
    plain,
    read_treebank,
    statistics,
    to_pair,
    unlinearise,
)
from regard.errors import DataError
from regard.evaluation.trees import read_tree, retag, write_tree

CAT = "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))"


def normal(text):
    return normalise(read_tree(text))


def normalised(count, seed):
    rng = random.Random(seed)
    found = [normalise(random_tree(rng, rng.randint(1, 12))) for _ in range(count)]
    return [tree for tree in found if tree is not None]


def test_a_pair_worked_by_hand():
    assert to_pair(read_tree(CAT)) == Pair("the cat sleeps .", "(S (NP XX XX )NP (VP XX )VP XX )S")


def test_every_symbol_is_linked_to_the_next_word_and_the_last_brackets_to_none():
    assert to_pair(read_tree(CAT)).alignment == "0-0 0-1 0-2 1-3 2-4 2-5 2-6 3-7 3-8"


def test_a_tree_comes_back_from_its_symbols():
    trees = normalised(80, seed=1)
    assert any(tree is outermost(tree) for tree in trees)  # with a TOP that has to be written
    for tree in trees:
        pair = to_pair(tree)
        assert retag(unlinearise(pair.target.split(), pair.source.split()), tree.tags) == tree
        numbered = to_pair(tree, 5)
        assert retag(unlinearise(numbered.target.split(), numbered.source.split()[1::2]), tree.tags) == tree


def test_numbered_words_have_the_same_number_on_both_sides_and_symbols_are_linked_to_it():
    pair = to_pair(read_tree(CAT), 3)
    assert pair.source == "① the ② cat ③ sleeps ① ."
    assert pair.target == "(S (NP ① ② )NP (VP ③ )VP ① )S"
    assert pair.alignment == "0-0 0-1 0-2 2-3 4-4 4-5 4-6 6-7 6-8"
    assert (len(NUMBERS), NUMBERS[0], NUMBERS[-1]) == (50, "①", "㊿")
    assert [unicodedata.numeric(number) for number in NUMBERS] == list(range(1, 51))


def test_a_normalised_tree_stays_as_it_is():
    for tree in normalised(60, seed=2):
        assert normalise(tree) == tree


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("( (S (NP-SBJ-1 (NN a)) (VP=2 (VB b))))", "(TOP (S (NP (NN a)) (VP (VB b))))"),
        ("(S (NN a))", "(TOP (S (NN a)))"),
        ("(ROOT (S (NN a)))", "(TOP (S (NN a)))"),
        ("(S1 (S (NN a)) (. .))", "(TOP (S (NN a)) (. .))"),
        ("(TOP (S1 (TOP (S (NN a)))))", "(TOP (S (NN a)))"),
        ("(NN a)", "(TOP (NN a))"),
        ("(TOP (NN a))", "(TOP (NN a))"),
        ("(S (VP (VB a) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))))", "(TOP (S (VP (VB a))))"),
        ("(S (VP (VP (VB a))))", "(TOP (S (VP (VP (VB a)))))"),  # unary chains stay
        ("(S (-LRB- -LRB-) (PRP$ my) (NN-X b))", "(TOP (S (-LRB- -LRB-) (PRP$ my) (NN-X b)))"),  # and so do tags
    ],
)
def test_trees_normalised_by_hand(raw, expected):
    assert write_tree(normal(raw)) == expected


def test_of_nothing_but_traces_nothing_is_left():
    assert normal("(S (NP (-NONE- *)) (VP (-NONE- *T*)))") is None


@pytest.mark.parametrize(
    ("label", "expected"), [("NP", "NP"), ("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("S=1-TPC", "S"), ("-NONE-", "-NONE-")]
)
def test_labels_without_functions(label, expected):
    assert plain(label) == expected


@pytest.mark.parametrize(
    ("symbols", "words", "message"),
    [
        ("", "a", "0 symbols: 0 brackets stay open; expected one whole tree"),
        ("XX", "a", "symbol 1: found 'XX', expected an opening bracket"),
        (")S", "a", r"symbol 1: found '\)S', expected an opening bracket"),
        ("(S XX", "a", "2 symbols: 1 brackets stay open"),
        ("(S XX )NP", "a", r"symbol 3: found '\)NP', expected XX, an opening bracket or \)S"),
        ("(S )S", "a", r"symbol 2: found '\)S', expected XX, an opening bracket$"),
        ("(S ( XX )", "a", r"symbol 2: found '\(', expected XX"),
        ("(S the )S", "a", "symbol 2: found 'the', expected XX"),
        ("(S XX XX )S", "a", "symbol 3: found 'XX', but the sentence has only 1 words"),
        ("(S XX )S", "a b", "3 symbols: the tree has 1 words, the sentence 2"),
        ("(S XX )S (S", "a b", r"symbol 4: found '\(S', expected nothing after the tree"),
    ],
)
def test_symbols_that_are_no_tree_are_refused(symbols, words, message):
    with pytest.raises(DataError, match=message):
        unlinearise(symbols.split(), words.split())


def test_a_file_of_trees_is_read_and_normalised(tmp_path):
    file = tmp_path / "trees"
    file.write_text("( (S\n   (NP-SBJ (NN a))\n (VP (VB b))))\n\n( (S (-NONE- *)))\n(S (NN c))\n", encoding="utf-8")
    assert [write_tree(tree) for tree in read_treebank(file)] == [
        "(TOP (S (NP (NN a)) (VP (VB b))))",
        "(TOP (S (NN c)))",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("(S (NN a)\n", "trees, line 1: a bracket opened here is never closed"),
        ("(S (NN a))\n(S (NN a)))\n", r"trees, line 2: found \)"),
        ("(S (-NONE- *))\n", "trees: found no tree that has words"),
        ("\n", "trees: found no tree that has words"),
        ("", "the file is empty"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, content, message):
    (tmp_path / "trees").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_treebank(tmp_path / "trees")


def test_statistics_worked_by_hand():
    trees = [normal(CAT), normal("(S (VP (VP (NP (NN a)))))"), normal("(UH yes)")]
    found = statistics(trees)
    assert (found.trees, found.words, found.longest, found.symbols) == (3, 6, 4, 10)
    assert (found.deepest, found.chain) == (4, 4)
    assert found.labels == {"VP": 3, "S": 2, "NP": 2, "TOP": 1}


@pytest.mark.parametrize("step", [25, pytest.param(1, marks=pytest.mark.slow)])
def test_the_trees_of_the_treebank_keep_the_laws(step):
    """Words and stripping as others prepared them, nothing lost, every tree let through by the grammar."""
    folder = treebank("train.clean.trees.gz").parent
    command, root = [sys.executable, "-m", "tests.whole_treebank", folder, str(step)], Path(__file__).parents[2]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
