"""Other segmentations of a word, for training: what would join its characters is withheld with probability p.

SentencePiece can sample too, but from one generator per thread that cannot be set again: not reproducible.
Both samplers remember the words they met, which changes their speed and nothing else.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import NamedTuple, Protocol, runtime_checkable

from regard.text.special import UNK
from regard.text.unicode import utf8

REMEMBERED = 50_000  # words, before a sampler starts afresh: some 20 MB for BPE, 150 MB for unigram
LONGEST_PIECE = 16  # characters; SentencePiece's own limit


@dataclass(frozen=True)
class Inventory:
    """The pieces of a vocabulary with their scores, and the ids of the 256 bytes (none without byte fallback)."""

    ids: Mapping[str, int]
    scores: Mapping[str, float]
    byte_ids: Sequence[int]

    def spell(self, symbol: str) -> tuple[int, ...]:
        """The ids of a piece, or of a character that is none."""
        id = self.ids.get(symbol)
        if id is not None:
            return (id,)
        return tuple(self.byte_ids[byte] for byte in utf8(symbol)) if self.byte_ids else (UNK,)


@runtime_checkable
class Sampler(Protocol):
    def draw(self, word: str, dropout: float, rng: random.Random) -> Sequence[int]: ...


class Merges:
    """BPE-dropout: at each step every merge is withheld with probability p, and the best of the others is done.

    That merge is the first success of a walk from the best merge down, so one draw a step is mostly enough; a word
    of which nothing is withheld takes its remembered merges and needs no search.
    Provilkov et al. 2020, algorithm 1.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._words: dict[str, tuple[list[int], tuple[int, ...]]] = {}

    def draw(self, word: str, dropout: float, rng: random.Random) -> Sequence[int]:
        places, ids = self._words.get(word) or self._begin(word)
        for step in range(len(places)):
            if rng.random() < dropout:
                return self._spell(self._go_on(word, places[:step], dropout, rng))
        return ids

    def _go_on(self, word: str, done: list[int], dropout: float, rng: random.Random) -> list[str]:
        """The symbols in the end, when the merge that would follow on `done` is withheld."""
        symbols = list(word)
        for place in done:
            _join(symbols, place)
        candidates = self._ranked(symbols)[1:]
        while (kept := _first_kept(candidates, dropout, rng)) is not None:
            _join(symbols, kept)
            candidates = self._ranked(symbols)
        return symbols

    def _begin(self, word: str) -> tuple[list[int], tuple[int, ...]]:
        """Where the word is merged when nothing is withheld, and the ids that this makes."""
        if len(self._words) >= REMEMBERED:
            self._words.clear()
        symbols, places = list(word), []
        while ranked := self._ranked(symbols):
            places.append(ranked[0][1])
            _join(symbols, ranked[0][1])
        begun = places, self._spell(symbols)
        self._words[word] = begun
        return begun

    def _ranked(self, symbols: list[str]) -> list[tuple[float, int]]:
        """(-score, place) of the merges that are possible, best first, the leftmost of equals first."""
        scores = self._inventory.scores
        joined = enumerate(map(add, symbols, symbols[1:]))
        return sorted([(-scores[pair], place) for place, pair in joined if pair in scores])

    def _spell(self, symbols: list[str]) -> tuple[int, ...]:
        return tuple([id for symbol in symbols for id in self._inventory.spell(symbol)])


def _first_kept(ranked: list[tuple[float, int]], dropout: float, rng: random.Random) -> int | None:
    for _, place in ranked:
        if rng.random() >= dropout:
            return place
    return None


def _join(symbols: list[str], place: int) -> None:
    symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]


class _Arc(NamedTuple):
    """A piece that starts at character `start`."""

    start: int
    score: float
    ids: tuple[int, ...]


class Lattice:
    """The most likely segmentation after every piece longer than a character was withheld with probability p.

    The unigram counterpart of BPE-dropout, so that one number means the same for both; the p-th part of the lattice
    goes, Viterbi finds the best path through the rest. After MaxMatch-Dropout, Hiraoka 2022.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._unknown = min(inventory.scores.values(), default=0.0) - 10.0  # SentencePiece's score for it
        self._words: dict[str, list[list[_Arc]]] = {}

    def draw(self, word: str, dropout: float, rng: random.Random) -> Sequence[int]:
        best, chosen = [0.0], []
        for arcs in self._words.get(word) or self._begin(word):
            top, choice, last = -math.inf, arcs[-1], len(best) - 1
            for arc in arcs:
                if arc.start == last or rng.random() >= dropout:
                    score = best[arc.start] + arc.score
                    if score > top:
                        top, choice = score, arc
            best.append(top)
            chosen.append(choice)
        path, end = [], len(chosen)
        while end > 0:
            arc = chosen[end - 1]
            path.append(arc.ids)
            end = arc.start
        return [id for ids in reversed(path) for id in ids]

    def _begin(self, word: str) -> list[list[_Arc]]:
        if len(self._words) >= REMEMBERED:
            self._words.clear()
        begun = [self._ending(word, end) for end in range(1, len(word) + 1)]
        self._words[word] = begun
        return begun

    def _ending(self, word: str, end: int) -> list[_Arc]:
        """The pieces that end there, the longest first as SentencePiece prefers at a tie; the last is one character."""
        spell, scores = self._inventory.spell, self._inventory.scores
        starts = range(max(0, end - LONGEST_PIECE), end - 1)
        longer = [_Arc(a, scores[word[a:end]], spell(word[a:end])) for a in starts if word[a:end] in scores]
        character = word[end - 1]
        return [*longer, _Arc(end - 1, scores.get(character, self._unknown), spell(character))]
