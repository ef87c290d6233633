"""From pieces back to the user's words: what stands between white space."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from regard.text.tokeniser import Piece

_WORD = re.compile(r"\S+")


def word_spans(text: str) -> list[tuple[int, int]]:
    """[start, end) of each word; the words are those of `text.split()`."""
    return [found.span() for found in _WORD.finditer(text)]


def words_of(pieces: Sequence[Piece], text: str) -> list[range]:
    """For each piece of `text`, the numbers of the words that it has a character of, counted from 0.

    Most pieces have one, and one that reaches over a blank has more. A piece of blanks alone is a part of the word
    after it, as where the blank and the word are one piece; behind the last word, of that.
    """
    spans = word_spans(text)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    found = [range(bisect_right(ends, piece.start), bisect_left(starts, piece.end)) for piece in pieces]
    return [words or range(len(spans))[words.start :][:1] or range(len(spans))[-1:] for words in found]
