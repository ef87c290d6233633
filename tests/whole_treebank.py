"""The laws of a treebank, run by a test in a process of its own: types checked at every call would take minutes.

    python -m tests.whole_treebank FOLDER STEP

takes every STEP-th tree.
"""

import sys
from itertools import islice
from pathlib import Path

from regard.data.readers import read_lines
from regard.data.treebank import is_word, linearise, normalise, statistics, to_pair, unlinearise
from regard.decoding.grammar import Grammar, Prefix, takes_word
from regard.evaluation.brackets import score_brackets
from regard.evaluation.trees import Tree, read_tree, read_trees, retag, write_tree
from regard.text.special import EOS, NAMES


def lossless(trees: list[Tree]) -> None:
    for tree in trees:
        assert retag(unlinearise(linearise(tree), tree.words), tree.tags) == tree
        assert read_tree(write_tree(tree)) == tree == normalise(tree)


def allowed(trees: list[Tree], chains: int) -> None:
    """Each linearised tree is let through, symbol by symbol."""
    targets = [linearise(tree) for tree in trees]
    names = [*NAMES, *sorted({symbol for target in targets for symbol in target})]
    ids = {name: id for id, name in enumerate(names)}
    grammar = Grammar(names, chains=chains, cap=1 + max(map(len, targets)))
    forbidden = grammar.forbidden.tolist()
    for tree, target in zip(trees, targets, strict=True):
        words, prefix = len(tree.words), Prefix()
        for place, symbol in enumerate(target):
            row = grammar.choice(prefix, words, grammar.limit(words) - place)
            let_out = takes_word(row) if is_word(symbol) else not forbidden[row][ids[symbol]]
            assert let_out, (write_tree(tree), place, symbol)
            prefix = grammar.after(prefix, ids[symbol])
        assert not forbidden[grammar.choice(prefix, words, grammar.limit(words) - len(target))][EOS]


def read(path: Path, step: int) -> list[Tree]:
    return [normalise(tree) for tree in read_trees(islice(read_lines(path), 0, None, step), str(path))]


def main(folder: Path, step: int) -> None:
    every: list[Tree] = []
    for part in ("train", "dev"):
        trees = read(folder / f"{part}.clean.trees.gz", step)
        assert read(folder / f"{part}.raw.trees.gz", step) == trees  # stripped by others, with the same result
        lines = list(read_lines(folder / f"{part}.txt.gz"))[::step]
        assert [to_pair(tree).source for tree in trees] == lines
        every += trees
    lossless(every)
    allowed(every, statistics(every).chain)
    perfect = score_brackets(every, every)
    assert (perfect.f1, perfect.complete_match, perfect.mismatched) == (100, 100, ())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
