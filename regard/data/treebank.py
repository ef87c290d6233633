"""A treebank as parallel text: the words of a sentence on one side, its brackets in a row on the other.

    (TOP (S (NP (DT the) (NN cat)) (VP (VBZ sleeps))))
    source:  the cat sleeps
    target:  (S (NP XX XX )NP (VP XX )VP )S

Every word, with its tag, is XX, and a closing bracket says what it closes. Vinyals, Kaiser et al. 2015, §2.2. Or the
words are numbered on both sides, so that nobody has to count how many were read:

    source:  ① the ② cat ③ sleeps
    target:  (S (NP ① ② )NP (VP ③ )VP )S
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle
from pathlib import Path

from regard.data.pairs import Pair
from regard.data.readers import read_lines
from regard.errors import DataError
from regard.evaluation.brackets import TRACE
from regard.evaluation.trees import TOP, Tree, read_trees

WORD = "XX"
NUMBERS = "".join(map(chr, [*range(0x2460, 0x2474), *range(0x3251, 0x3260), *range(0x32B1, 0x32C0)]))  # ① to ㊿
ROOTS = frozenset({TOP, "ROOT", "S1"})  # names under which tools write a root that means nothing


def word_symbols(numbers: int) -> list[str]:
    """What stands for words in a row of symbols: as many numbers, or XX where there is none."""
    return list(NUMBERS[:numbers]) or [WORD]


def is_word(symbol: str) -> bool:
    return symbol == WORD or (len(symbol) == 1 and symbol in NUMBERS)


def sentence_of(words: Sequence[str], numbers: int) -> str:
    """The sentence as a parser reads it: words, each after its number if they are numbered; ① follows the last one."""
    if not numbers:
        return " ".join(words)
    return " ".join(f"{NUMBERS[place % numbers]} {word}" for place, word in enumerate(words))


def read_treebank(path: Path) -> list[Tree]:
    """The trees of a bracket file (plain, .gz or .xz), normalised; those of nothing but traces are left out."""
    trees = [kept for tree in read_trees(read_lines(path), str(path)) if (kept := normalise(tree)) is not None]
    if not trees:
        raise DataError(f"{path}: found no tree that has words, expected trees such as (S (NP (PRP I)) (VP (VBP am)))")
    return trees


def normalise(tree: Tree) -> Tree | None:
    """The tree as parsers learn it: no traces, no function labels (NP-SBJ → NP), and one TOP above all.

    What the traces leave empty goes with them; none if that is everything. Unary chains stay as they are.
    """
    kept = _strip(tree)
    if kept is None:
        return None
    while kept.label in ROOTS and len(kept.children) == 1 and kept.children[0].label in ROOTS:
        kept = kept.children[0]
    return Tree(TOP, kept.children if kept.label in ROOTS and kept.children else (kept,))


def _strip(tree: Tree) -> Tree | None:
    if tree.word is not None:
        return None if tree.label == TRACE else tree
    children = tuple([kept for child in tree.children if (kept := _strip(child)) is not None])
    return Tree(plain(tree.label), children) if children else None


def plain(label: str) -> str:
    """NP-SBJ-1 → NP, NP=2 → NP; a label that begins with a mark, such as -LRB-, is one of its own."""
    return label[0] + label[1:].partition("-")[0].partition("=")[0] if label[0] not in "-=" else label


def outermost(tree: Tree) -> Tree:
    """What is written down of a tree: TOP goes without saying where it holds one constituent and nothing else."""
    return tree.children[0] if tree.label == TOP and len(tree.children) == 1 and tree.children[0].children else tree


def linearise(tree: Tree, numbers: int = 0) -> list[str]:
    """The tree as a row of symbols; `unlinearise` gives it back, if it is normalised."""
    symbols: list[str] = []
    _linearise(outermost(tree), cycle(word_symbols(numbers)), symbols)
    return symbols


def _linearise(tree: Tree, words: Iterator[str], symbols: list[str]) -> None:
    if tree.word is not None:
        symbols.append(next(words))
        return
    symbols.append(f"({tree.label}")
    for child in tree.children:
        _linearise(child, words, symbols)
    symbols.append(f"){tree.label}")


def unlinearise(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """The tree that the symbols say, over these words, beneath TOP; the tag of every word is XX."""
    nested: list[tuple[str, list[Tree]]] = [("", [])]  # outside of everything, where the root will be
    used = 0
    for number, symbol in enumerate(symbols, start=1):
        place = f"symbol {number}: found {symbol!r}"
        label, inside = nested[-1]
        if len(nested) == 1 and (inside or symbol[:1] != "("):
            raise DataError(f"{place}, expected {'nothing after the tree' if inside else 'an opening bracket'}")
        if is_word(symbol):
            if used == len(words):
                raise DataError(f"{place}, but the sentence has only {len(words)} words")
            inside.append(Tree(WORD, word=words[used]))
            used += 1
        elif symbol[:1] == "(" and len(symbol) > 1:
            nested.append((symbol[1:], []))
        elif symbol == f"){label}" and inside:
            nested.pop()
            nested[-1][1].append(Tree(label, tuple(inside)))
        else:
            raise DataError(f"{place}, expected {WORD}, an opening bracket{f' or ){label}' if inside else ''}")
    if len(nested) > 1 or not nested[0][1]:
        raise DataError(f"{len(symbols)} symbols: {len(nested) - 1} brackets stay open; expected one whole tree")
    if used < len(words):
        raise DataError(f"{len(symbols)} symbols: the tree has {used} words, the sentence {len(words)}")
    (root,) = nested[0][1]
    return root if root.label == TOP else Tree(TOP, (root,))


def to_pair(tree: Tree, numbers: int = 0) -> Pair:
    """Words and symbols; each symbol is linked to the word that comes next, on which it depends what is written.

    Of a word with a number it is linked to the number.
    """
    symbols, stride = linearise(tree, numbers), 2 if numbers else 1
    read = accumulate((is_word(symbol) for symbol in symbols[:-1]), initial=0)  # words before each symbol
    links = " ".join(f"{stride * word}-{place}" for place, word in enumerate(read) if word < len(tree.words))
    return Pair(sentence_of(tree.words, numbers), " ".join(symbols), links)


@dataclass(frozen=True)
class Statistics:
    """What a parser of these trees must be able to say; the counts are of what is written down."""

    trees: int
    words: int
    longest: int  # words of a sentence
    symbols: int  # of the longest target
    deepest: int  # constituents on the longest way down
    chain: int  # constituents of which each is all that is in the one before
    labels: dict[str, int]  # most frequent first


def statistics(trees: Iterable[Tree]) -> Statistics:
    written = [outermost(tree) for tree in trees]
    sizes = [len(tree.words) for tree in written]
    labels: Counter[str] = Counter()
    chain = 0
    for tree in written:
        waiting = [(tree, 1)]
        while waiting:
            node, links = waiting.pop()
            if node.children:
                labels[node.label] += 1
                chain = max(chain, links)
                waiting += [(child, links + 1 if len(node.children) == 1 else 1) for child in node.children]
    return Statistics(
        trees=len(written),
        words=sum(sizes),
        longest=max(sizes, default=0),
        symbols=max((len(linearise(tree)) for tree in written), default=0),
        deepest=max((tree.depth for tree in written), default=0),
        chain=chain,
        labels=dict(labels.most_common()),
    )
