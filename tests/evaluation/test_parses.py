"""Scores of trees without tags: those of EVALB under the tags of the reference."""

import random

import pytest
from toy_trees import damaged, toy_trees

from regard.evaluation.brackets import score_brackets
from regard.evaluation.parses import SHORT, score_parses, tagged_as
from regard.evaluation.trees import Tree, read_tree


def untagged(tree: Tree) -> Tree:
    if tree.word is not None:
        return Tree("XX", word=tree.word)
    return Tree(tree.label, tuple(untagged(child) for child in tree.children))


def test_a_perfect_parser_needs_no_tags():
    gold = toy_trees(9, seed=1)
    found = score_parses(gold, [untagged(tree) for tree in gold])
    assert (found.every.f1, found.every.complete_match, found.well_formed, found.every.mismatched) == (
        100,
        100,
        100,
        (),
    )


def test_scores_are_those_of_the_same_trees_with_the_gold_tags():
    gold, rng = toy_trees(40, seed=2), random.Random(3)
    parsed = [untagged(damaged(tree, rng, ["NP", "VP", "X"], ["NN"], rate=0.2)) for tree in gold]
    assert [tree.tags for tree in tagged_as(gold, parsed)] == [tree.tags for tree in gold]
    found = score_parses(gold, parsed)
    assert found.every == score_brackets(gold, tagged_as(gold, parsed))
    assert 0 < found.every.f1 < 100


def test_a_score_worked_by_hand():
    gold = read_tree("(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))")  # S 0-3, NP 0-2, VP 2-3
    parsed = read_tree("(TOP (S (NP (XX the) (XX cat)) (VP (XX sleeps) (XX .)) ))")  # the same: punctuation is free
    other = read_tree("(TOP (S (XX the) (VP (XX cat) (XX sleeps)) (XX .)))")  # S 0-3, VP 1-3
    found = score_parses([gold, gold], [parsed, other])
    assert (found.every.gold, found.every.parsed, found.every.matched) == (6, 5, 4)
    assert found.to_json()["f1"] == pytest.approx(100 * 8 / 11)
    assert found.to_json()["complete_match"] == 50
    assert found.lines()[0] == "F1 72.73 (precision 80.00, recall 66.67)"


def test_long_sentences_are_left_out_of_the_score_of_short_ones():
    right = read_tree("(S (X a) (X b))")
    long = Tree("S", tuple(Tree("X", word="w") for _ in range(SHORT + 1)))
    wrong = Tree("NP", long.children)
    found = score_parses([right, long], [right, wrong])
    assert (found.short.sentences, found.short.f1) == (1, 100)
    assert found.every.f1 == 50


def test_a_tree_over_other_words_is_not_well_formed_for_its_sentence():
    gold = [read_tree("(S (X a) (X b))")] * 2
    found = score_parses(gold, [gold[0], read_tree("(S (X a) (X c))")])
    assert found.well_formed == 50
    assert found.to_json()["mismatched"] == 1
