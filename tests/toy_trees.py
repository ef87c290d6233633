"""Random trees, random damage to them, trees that can be learned, and the treebank where there is one."""

import os
import random
from pathlib import Path

import pytest

from regard.evaluation.trees import Tree

LABELS = ["S", "NP", "VP", "ADVP", "PRT", "NP-SBJ", "PP=2", "TOP"]
TAGS = ["NN", "DT", "VB", ",", ".", "-NONE-", "PRT"]


def treebank(name: str) -> Path:
    root = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (root / "treebank" / name).exists():
        pytest.skip(f"needs treebank/{name} beneath the folder that REGARD_DATA names")
    return root / "treebank" / name


def random_tree(rng: random.Random, words: int, labels=LABELS, tags=TAGS, unary: float = 0.3) -> Tree:
    """A constituent over so many words, cut at random places."""
    if words == 1 and rng.random() < 0.5:
        return Tree(rng.choice(labels), (leaf(rng, tags),))
    if rng.random() < unary:
        return Tree(rng.choice(labels), (random_tree(rng, words, labels, tags, unary / 2),))
    cuts = sorted(rng.sample(range(1, words), rng.randint(0, min(3, words - 1))))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, words], strict=True)]
    if len(sizes) == 1:
        return Tree(rng.choice(labels), tuple(leaf(rng, tags) for _ in range(words)))
    children = [
        leaf(rng, tags) if size == 1 and rng.random() < 0.6 else random_tree(rng, size, labels, tags, unary)
        for size in sizes
    ]
    return Tree(rng.choice(labels), tuple(children))


def toy_tree(rng: random.Random) -> Tree:
    """A sentence of a small language whose words decide its tree: "the dog that sings sees a cat ." """
    return Tree("TOP", (Tree("S", (noun_phrase(rng, 1), verb_phrase(rng, 1), Tree(".", word="."))),))


def noun_phrase(rng: random.Random, depth: int) -> Tree:
    plain = Tree("NP", (Tree("DT", word=rng.choice(["the", "a"])), Tree("NN", word=rng.choice(["dog", "cat", "owl"]))))
    if not depth or rng.random() < 0.6:
        return plain
    that = Tree("WHNP", (Tree("WDT", word="that"),))
    return Tree("NP", (plain, Tree("SBAR", (that, Tree("S", (verb_phrase(rng, depth - 1),))))))


def verb_phrase(rng: random.Random, depth: int) -> Tree:
    if not depth or rng.random() < 0.4:
        return Tree("VP", (Tree("VBZ", word=rng.choice(["sleeps", "sings"])),))
    return Tree("VP", (Tree("VBZ", word=rng.choice(["sees", "hears"])), noun_phrase(rng, depth - 1)))


def toy_trees(count: int, seed: int) -> list[Tree]:
    rng = random.Random(seed)
    return [toy_tree(rng) for _ in range(count)]


def leaf(rng: random.Random, tags=TAGS) -> Tree:
    return Tree(rng.choice(tags), word=rng.choice(["cat", "the", "'s", "*T*-1", "Straße", "-LRB-", "XX"]))


def damaged(tree: Tree, rng: random.Random, labels, tags, rate: float = 0.15) -> Tree:
    """The tree with brackets renamed, dropped, added and moved and with tags changed; the words stay."""
    if tree.word is not None:
        # Between words that count and words that do not, EVALB sees another sentence: seldom.
        wrong = rng.random() < rate / 5
        return Tree(rng.choice(tags), word=tree.word) if wrong else tree
    children: list[Tree] = []
    for child in tree.children:
        new = damaged(child, rng, labels, tags, rate)
        dropped = rng.random() < rate and new.children
        children += new.children if dropped else [new]
    if len(children) > 2 and rng.random() < rate:  # a bracket around neighbours, whether or not it was there
        start = rng.randrange(len(children) - 1)
        end = rng.randint(start + 1, len(children))
        children[start:end] = [Tree(rng.choice(labels), tuple(children[start:end]))]
    label = rng.choice(labels) if rng.random() < rate else tree.label
    return Tree(label, tuple(children))
