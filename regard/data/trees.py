"""From a recipe's treebank to the trees to learn from and those held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.accounts import CARVED, GIVEN, Account, Report, hold_out, resolve
from regard.data.options import TreebankOptions
from regard.data.treebank import read_treebank
from regard.errors import DataError
from regard.evaluation.trees import Tree


@dataclass(frozen=True)
class LoadedTrees:
    """Normalised trees in the order of the files; no sentence is on both sides if a part was held out."""

    training: list[Tree]
    validation: list[Tree]
    report: Report


def load_trees(options: TreebankOptions | None, valid_size: int | None, seed: int) -> LoadedTrees:
    """What to learn from, and what not: the validation files, or the sentences with the smallest keyed hash."""
    if options is None:
        raise DataError("data.trees: found no treebank; give files of trees such as (S (NP (PRP I)) (VP (VBP am)))")
    trees, account = _read(options.files)
    if options.valid:
        held, left = _read(options.valid)
        return LoadedTrees(trees, held, Report((account,), left, GIVEN))
    sentences = [" ".join(tree.words) for tree in trees]
    taken = set(hold_out(dict.fromkeys(sentences), valid_size, seed, "trees"))
    held = [tree for tree, sentence in zip(trees, sentences, strict=True) if sentence in taken]
    kept = [tree for tree, sentence in zip(trees, sentences, strict=True) if sentence not in taken]
    left = Account("validation", len(held), len(held), {}, "trees")
    return LoadedTrees(kept, held, Report((account.without("held out", len(held)),), left, CARVED))


def _read(files: Sequence[Path]) -> tuple[list[Tree], Account]:
    trees = [tree for path in files for tree in read_treebank(resolve(path))]
    return trees, Account(" + ".join(map(str, files)), len(trees), len(trees), {}, "trees")
