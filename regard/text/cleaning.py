"""The words that BERT sees in a text: cleaned, without accents if asked, cut at spaces, punctuation and ideographs.

Every character keeps the place it comes from, so that a piece can point into the user's own text.
Devlin et al. 2019; where the published programs differ, as the `tokenizers` library does it.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# White_Space that is not also a control character: those vanish, they do not separate.
_CHUNK = re.compile("[^\t\n\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]"
)
_ASCII_PUNCTUATION = re.compile("[!-/:-@\\[-`{-~]")

Placed = tuple[str, int]  # a character and its place in the text


@dataclass(frozen=True)
class Cleaning:
    lower: bool  # capitals become small letters
    strip: bool  # accents go
    ideographs: bool  # each CJK ideograph is a word of its own


def chunks(text: str) -> Iterator[tuple[int, str]]:
    """(start, chunk) of what stands between white space."""
    return ((found.start(), found[0]) for found in _CHUNK.finditer(text))


def words(chunk: str, cleaning: Cleaning) -> list[list[Placed]]:
    """The words of a text without white space, none of them empty."""
    letters: Iterable[Placed] = ((c, place) for place, c in enumerate(chunk) if not _is_control(c))
    if cleaning.ideographs:
        letters = _set_apart(letters)
    if cleaning.strip:
        letters = (each for each in decompose(letters) if unicodedata.category(each[0]) != "Mn")
    if cleaning.lower:
        letters = ((small, place) for c, place in letters for small in c.lower())
    found: list[list[Placed]] = [[]]
    for c, place in letters:
        if c == " ":
            found.append([])
        elif _is_punctuation(c):
            found += [[(c, place)], []]
        else:
            found[-1].append((c, place))
    return [word for word in found if word]


def decompose(letters: Iterable[Placed]) -> Iterator[Placed]:
    """Normalisation form D: each character in its parts, marks on one letter in their canonical order."""
    marks: list[tuple[int, Placed]] = []
    for c, place in letters:
        for part in unicodedata.normalize("NFD", c):
            rank = unicodedata.combining(part)
            if rank:
                marks.append((rank, (part, place)))
                continue
            yield from _in_order(marks)
            marks.clear()
            yield part, place
    yield from _in_order(marks)


def _in_order(marks: list[tuple[int, Placed]]) -> list[Placed]:
    return [mark for _, mark in sorted(marks, key=lambda each: each[0])]


def _set_apart(letters: Iterable[Placed]) -> Iterator[Placed]:
    for c, place in letters:
        if _IDEOGRAPH.match(c):
            yield from ((" ", place), (c, place), (" ", place))
        else:
            yield c, place


def _is_control(c: str) -> bool:
    return c == "\ufffd" or unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")


def _is_punctuation(c: str) -> bool:
    return _ASCII_PUNCTUATION.match(c) is not None or unicodedata.category(c).startswith("P")
