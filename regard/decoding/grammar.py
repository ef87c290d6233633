"""Search that can only write trees: brackets that match, over as many words as the sentence has, and an end.

A constituent that is all there is in another makes a chain with it. A chain has at most `chains` constituents; to
open more, there must be words left that break it up. Chains are what makes the number of trees over a sentence
infinite, and their limit is why every search ends.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.treebank import WORD, is_word, word_symbols
from regard.errors import DecodingError
from regard.evaluation.trees import DEEPEST
from regard.text.special import EOS

EMPTY = -1  # of a constituent's links: nothing is in it yet


class Open(NamedTuple):
    """A constituent that is not closed yet.

    `links` is the length of the chain beneath it: 0 if a word or more than one constituent is in it. `bare`
    constituents right around it are empty but for it; further out, `rest` words are needed to break up chains.
    """

    label: int
    outer: "Open | None"
    depth: int
    links: int
    bare: int
    rest: int

    def needs(self, chains: int) -> int:
        """The fewest words with which this and all around it can be closed.

        Closing the bare ones one by one makes the chain longer by one each time, and every time it is full a word has
        to break it up: (links + bare) // chains words.
        """
        return (self.links == EMPTY) + (max(self.links, 0) + self.bare) // chains + self.rest


class Prefix(NamedTuple):
    """The beginning of a tree: the innermost constituent that is open, and the words so far.

    None is open before the first bracket and after the last.
    """

    inner: Open | None = None
    words: int = 0
    closed: bool = False


def open_bracket(prefix: Prefix, label: int, chains: int) -> Prefix | None:
    """The prefix after an opening bracket; none if there cannot be one."""
    outer = prefix.inner
    if prefix.closed:
        return None
    if outer is None:
        inner = Open(label, None, 1, EMPTY, 0, 0)
    elif outer.links == EMPTY:
        inner = Open(label, outer, outer.depth + 1, EMPTY, outer.bare + 1, outer.rest)
    else:  # with a second constituent in it, `outer` begins a chain of its own
        inner = Open(label, outer, outer.depth + 1, EMPTY, 0, outer.bare // chains + outer.rest)
    return prefix._replace(inner=inner)


def put_word(prefix: Prefix) -> Prefix | None:
    """The prefix after a word; none if there cannot be one."""
    if prefix.inner is None:
        return None
    return Prefix(prefix.inner._replace(links=0), prefix.words + 1)


def close_bracket(prefix: Prefix, chains: int) -> Prefix | None:
    """The prefix after the innermost bracket is closed; none if it cannot be."""
    inner = prefix.inner
    if inner is None or inner.links in (EMPTY, chains):
        return None
    if inner.outer is None:
        return Prefix(None, prefix.words, closed=True)
    links = inner.links + 1 if inner.outer.links == EMPTY else 0
    return prefix._replace(inner=inner.outer._replace(links=links))


class Grammar:
    """Which symbols may follow which, for a vocabulary whose id i is the symbol names[i], such as "(NP", ")NP", "XX".

    If the vocabulary has numbers instead of XX, words are numbered: the next one is let out with its own number alone.
    A tree has at most `cap` symbols, the end token among them. Other symbols, and brackets that lack their partner,
    are never let out.
    """

    def __init__(self, names: Sequence[str], *, chains: int = 4, cap: int = 512) -> None:
        if chains < 1:
            raise DecodingError(f"chains: found {chains}, expected 1 or more")
        ids = {name: id for id, name in enumerate(names)}
        labels = [name[1:] for name in ids if name[:1] == "(" and f"){name[1:]}" in ids]
        words = [name for name in names if is_word(name)]
        self.numbers = 0 if words == [WORD] else len(words)
        if sorted(words) != sorted(word_symbols(self.numbers)) or not labels:
            raise DecodingError(
                f"vocabulary of {len(names)}: expected {WORD} and brackets such as (NP and )NP; "
                "train the target vocabulary on linearised trees"
            )
        self.chains, self.cap = chains, cap
        self.words = [ids[name] for name in word_symbols(self.numbers)]
        self.opens = {ids[f"({label}"]: i for i, label in enumerate(labels)}
        self.closes = {ids[f"){label}"]: i for i, label in enumerate(labels)}
        self.forbidden = self._table(len(names))

    def _table(self, vocab: int) -> Tensor:
        """What each class of states forbids: row open + 2·word + 4·(1 + label to close); then the end alone.

        Which word may come depends on how many there are, so all of them are forbidden here: see `takes_word`.
        """
        allowed = torch.zeros(4 * (1 + len(self.closes)) + 1, vocab, dtype=torch.bool)
        rows = torch.arange(len(allowed) - 1)
        allowed[:-1, list(self.opens)] = (rows % 2 == 1)[:, None]
        for id, label in self.closes.items():
            allowed[:-1, id] = rows // 4 == 1 + label
        allowed[-1, EOS] = True
        return ~allowed

    def limit(self, words: int) -> int:
        """The most symbols, the end token among them, of a tree over so many words: what a search must allow.

        A tree of n words branches at most n − 1 times; above each branching and each word stands a chain.
        """
        return min(self.cap, words + 2 * self.chains * (2 * words - 1) + 1)

    @property
    def most_words(self) -> int:
        """Of a sentence whose tree fits: two brackets and the end token are needed beside them."""
        return self.cap - 3

    def over(self, words: Sequence[int]) -> "WellFormed":
        """The rule for a batch whose sentence i has words[i] words."""
        for sentence, count in enumerate(words):
            if not 1 <= count <= self.most_words:
                raise DecodingError(
                    f"sentence {sentence}: found {count} words, expected 1 to {self.most_words}, which fit into "
                    f"{self.cap} symbols; leave the sentence out or raise cap"
                )
        return WellFormed(self, words)

    def after(self, prefix: Prefix, symbol: int) -> Prefix | None:
        """The prefix with one more symbol; none if no tree begins like that."""
        if symbol in self.words:
            return put_word(prefix) if symbol == self.next_word(prefix) else None
        if symbol in self.opens:
            return open_bracket(prefix, self.opens[symbol], self.chains)
        if symbol in self.closes and prefix.inner and prefix.inner.label == self.closes[symbol]:
            return close_bracket(prefix, self.chains)
        return None

    def next_word(self, prefix: Prefix) -> int:
        """The symbol of the next word."""
        return self.words[prefix.words % len(self.words)]

    def leads(self, prefix: Prefix | None, words: int, room: int) -> bool:
        """Whether a tree over exactly `words` words begins with the prefix and ends within `room` more symbols."""
        if prefix is None:
            return False
        left, inner = words - prefix.words, prefix.inner
        if inner is None:
            return prefix.closed and left == 0 and room >= 1
        fits = inner.depth < DEEPEST and inner.depth + left + 1 <= room
        return fits and inner.needs(self.chains) <= left

    def choice(self, prefix: Prefix | None, words: int, room: int) -> int:
        """The row of `forbidden` that holds after the prefix, but for the next word."""
        if prefix is None:
            return 0
        if prefix.closed:
            return -1 if self.leads(prefix, words, room) else 0
        opened = open_bracket(prefix, 0, self.chains)  # whichever label
        row = int(self.leads(opened, words, room - 1)) + 2 * int(self.leads(put_word(prefix), words, room - 1))
        if prefix.inner and self.leads(close_bracket(prefix, self.chains), words, room - 1):
            row += 4 * (1 + prefix.inner.label)
        return row


def takes_word(choice: int) -> bool:
    """Whether a word may follow, by the row of `Grammar.forbidden`."""
    return choice > 0 and choice // 2 % 2 == 1


class WellFormed:
    """An Adjust that lets out exactly the beginnings of trees over the words of each sentence, and nothing after one.

    It speaks of ids: a search with it must not narrow the output layer, and must allow `max_lengths`. A row that no
    tree begins like is forbidden everything. What is known of the prefixes of one length is kept for the next.
    """

    def __init__(self, grammar: Grammar, words: Sequence[int]) -> None:
        self.grammar, self.words = grammar, list(words)
        self.max_lengths: Int[Tensor, " n"] = torch.tensor([grammar.limit(n) for n in words], dtype=torch.long)
        self.length = 0
        self.known: dict[tuple[int, ...], Prefix | None] = {}
        self.before: dict[tuple[int, ...], Prefix | None] = {}

    def __call__(
        self,
        log_probs: Float[Tensor, "rows vocab"],
        tokens: Int[Tensor, "rows t"],
        sentences: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        length = tokens.shape[1]
        if length != self.length:
            self.length, self.before, self.known = length, self.known, {}
        grammar, classes, next_words = self.grammar, [], []
        for number, (row, sentence) in enumerate(zip(tokens.tolist(), sentences.tolist(), strict=True)):
            words, prefix = self.words[sentence], self.prefix(tuple(row))
            classes.append(grammar.choice(prefix, words, grammar.limit(words) - length))
            if prefix is not None and takes_word(classes[-1]):
                next_words.append((number, grammar.next_word(prefix)))
        forbidden = grammar.forbidden[torch.tensor(classes, dtype=torch.long)]
        if next_words:
            forbidden[torch.tensor(next_words).unbind(1)] = False
        return log_probs.masked_fill_(forbidden.to(log_probs.device), -torch.inf)

    def prefix(self, tokens: tuple[int, ...]) -> Prefix | None:
        """What the tokens are the beginning of: one step from all but the last, where that is known."""
        if tokens not in self.known:
            step = tokens[:-1] in self.before
            found = self.before[tokens[:-1]] if step else Prefix()
            for symbol in tokens[-1:] if step else tokens:
                found = None if found is None else self.grammar.after(found, symbol)
            self.known[tokens] = found
        return self.known[tokens]
