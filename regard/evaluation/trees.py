"""Constituency trees, read from and written in the brackets of the Penn Treebank."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from regard.errors import DataError

TOP = "TOP"  # the root of a tree that has none of its own
DEEPEST = 200  # nested constituents; news text has about 30, and Python's own stack ends near 1000 calls
NAME = re.compile(r"[^\s()]+")
TOKEN = re.compile(r"[()]|[^\s()]+")
ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent with children, or a word with its tag as the label: one of the two.

    `depth` counts the constituents on the longest way down; a tagged word has none.
    """

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if NAME.fullmatch(self.label) is None:
            raise DataError(f"tree: found the label {self.label!r}, expected one without spaces and brackets")
        if bool(self.children) == (self.word is not None):
            raise DataError(f"tree: {self.label} needs either children or a word, not both and not neither")
        if self.word is not None and self.word.split() != [self.word]:
            raise DataError(f"tree: found the word {self.word!r}, expected one without spaces")
        depth = 1 + max(child.depth for child in self.children) if self.children else 0
        if depth > DEEPEST:
            raise DataError(f"tree: found {depth} nested constituents, expected at most {DEEPEST}; flatten it")
        object.__setattr__(self, "depth", depth)

    def leaves(self) -> Iterator["Tree"]:
        """The tagged words, in order."""
        waiting = [self]
        while waiting:
            tree = waiting.pop()
            if tree.word is not None:
                yield tree
            waiting.extend(reversed(tree.children))

    @property
    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]

    @property
    def tags(self) -> list[str]:
        return [leaf.label for leaf in self.leaves()]


def write_tree(tree: Tree) -> str:
    """The tree on one line; brackets within words become -LRB- and -RRB-, as in the treebank."""
    if tree.word is not None:
        return f"({tree.label} {tree.word.translate(ESCAPES)})"
    return f"({tree.label} {' '.join([write_tree(child) for child in tree.children])})"


def retag(tree: Tree, tags: Sequence[str]) -> Tree:
    """The same tree with these tags on its words: a parser that gives none is scored under those of the reference."""
    words = len(tree.words)
    if len(tags) != words:
        raise DataError(f"tree: found {len(tags)} tags for {words} words; give one each")
    return _retag(tree, iter(tags))


def _retag(tree: Tree, tags: Iterator[str]) -> Tree:
    if tree.word is not None:
        return Tree(next(tags), word=tree.word)
    return Tree(tree.label, tuple([_retag(child, tags) for child in tree.children]))


def read_tree(text: str, name: str = "tree") -> Tree:
    """The one tree that the text holds."""
    trees = list(read_trees(text.split("\n"), name))
    if len(trees) != 1:
        raise DataError(f"{name}: found {len(trees)} trees, expected one")
    return trees[0]


def read_trees(lines: Iterable[str], name: str) -> Iterator[Tree]:
    """Every tree of a bracket file, on a line each or broken into many; messages call the file `name`.

    A root without a label, as in the files of the Penn Treebank, is named TOP.
    """
    nested: list[_Open] = []
    for number, line in enumerate(lines, start=1):
        place = f"{name}, line {number}"
        for token in TOKEN.findall(line):
            if token == "(":
                _open(nested, number, place)
            elif token == ")":
                tree = _close(nested, place)
                if nested:
                    nested[-1].children.append(tree)
                else:
                    yield tree
            else:
                _fill(nested, token, place)
    if nested:
        raise DataError(f"{name}, line {nested[0].line}: a bracket opened here is never closed; add the missing )")


@dataclass
class _Open:
    """What is known so far of a bracket that is not closed yet."""

    line: int
    label: str | None = None
    word: str | None = None
    children: list[Tree] = field(default_factory=list)


def _open(nested: list[_Open], number: int, place: str) -> None:
    if nested:
        outer = nested[-1]
        if outer.word is not None:
            raise DataError(f"{place}: found a bracket after the word {outer.word!r}, expected ) to close its tag")
        if outer.label is None and len(nested) > 1:
            raise DataError(f"{place}: found a constituent without a label, expected one after (")
        outer.label = outer.label or TOP
    if len(nested) > DEEPEST:
        raise DataError(f"{place}: found more than {DEEPEST} nested brackets; flatten the tree or close the brackets")
    nested.append(_Open(number))


def _fill(nested: list[_Open], token: str, place: str) -> None:
    """The first text after ( is the label, the second the word."""
    if not nested:
        raise DataError(f"{place}: found {token!r} outside brackets, expected (; write (label …)")
    inner = nested[-1]
    if inner.label is None:
        inner.label = token
    elif inner.word is None and not inner.children:
        inner.word = token
    else:
        raise DataError(f"{place}: found the word {token!r} without a tag; write ({inner.label} … (tag {token}))")


def _close(nested: list[_Open], place: str) -> Tree:
    if not nested:
        raise DataError(f"{place}: found ) where no bracket is open; remove it")
    inner = nested.pop()
    if inner.label is None:
        raise DataError(f"{place}: found (), expected a label and a word or constituents; remove it")
    if inner.word is None and not inner.children:
        raise DataError(f"{place}: found ({inner.label}), expected a word or constituents after the label")
    return Tree(inner.label, tuple(inner.children), inner.word)
