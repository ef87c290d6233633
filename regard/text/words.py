"""Where a word begins and ends, in scripts that put spaces between words and in those that do not."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

# Thai, Lao, Burmese, Khmer; Chinese, Japanese, Korean (whose endings are written onto foreign words).
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffdc\U00020000-\U0003ffff]"
)


def joins(character: str) -> bool:
    """Whether a word goes on over this character. Scripts without spaces never join: a word may begin anywhere."""
    return (character.isalnum() or character == "_") and not _UNSPACED.match(character)


def stands(text: str, start: int, end: int) -> bool:
    """Whether text[start:end], which is not empty, is no part of a longer word."""
    left = start > 0 and joins(text[start - 1]) and joins(text[start])
    right = end < len(text) and joins(text[end - 1]) and joins(text[end])
    return not (left or right)


def standing(text: str, phrase: str) -> list[int]:
    """Where the phrase begins in the text, wherever it is no part of a longer word; no two overlap."""
    found, start = [], text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if stands(text, start, end):
            found.append(start)
        else:
            end = start + 1
        start = text.find(phrase, end)
    return found


class Hit(NamedTuple):
    """A term found at text[start:end], and what it stands for."""

    start: int
    end: int
    target: str


class Terms:
    """Terms with what each stands for. One written in small letters is found in every case, others only as written.

    The terms are looked up by their first word, so that thousands of them cost a text no more than a few.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._starts: dict[str, list[tuple[str, str]]] = {}
        for term in sorted(filter(None, entries), key=len, reverse=True):
            _, word = next(_words(term))
            self._starts.setdefault(word.lower(), []).append((term, entries[term]))

    def find(self, text: str) -> list[Hit]:
        """From left to right, the longest at each place; no two overlap, and none is part of a longer word."""
        found: list[Hit] = []
        for start, word in _words(text) if self._starts else ():
            if found and start < found[-1].end:
                continue
            for term, target in self._starts.get(word.lower(), ()):
                end = start + len(term)
                written = text[start:end]
                same = written == term or (term.islower() and written.lower() == term)
                if same and stands(text, start, end):
                    found.append(Hit(start, end, target))
                    break
        return found


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Each place where a term may begin, with the word there: a run of characters that join, or one that does not."""
    start = 0
    while start < len(text):
        end = start + 1
        if joins(text[start]):
            while end < len(text) and joins(text[end]):
                end += 1
        yield start, text[start:end]
        start = end
