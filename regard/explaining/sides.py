"""Texts beside their tokens: which characters each token stands for, and which words it is a part of."""

import unicodedata
from collections.abc import Sequence

from regard.explaining.explanation import Side, Token, Word
from regard.text.offsets import word_spans, words_of
from regard.text.special import BOS, EOS, NAMES
from regard.text.tokeniser import Piece, Tokeniser
from regard.text.unicode import SPACE


def words_in(text: str) -> tuple[Word, ...]:
    return tuple(Word(text=text[start:end], start=start, end=end) for start, end in word_spans(text))


def special(id: int, place: int) -> Token:
    """A token that stands for no characters, before or after them."""
    return Token(id=id, text=NAMES[id], start=place, end=place, words=())


def beside(text: str, pieces: Sequence[Piece], before: Sequence[int] = (), after: Sequence[int] = ()) -> Side:
    """The text with its pieces; special ids may stand before and after them."""
    own = [
        Token(id=one.id, text=one.text, start=one.start, end=one.end, words=tuple(words))
        for one, words in zip(pieces, words_of(pieces, text), strict=True)
    ]
    first, last = [special(id, 0) for id in before], [special(id, len(text)) for id in after]
    return Side(text=text, words=words_in(text), tokens=(*first, *own, *last))


def given(tokeniser: Tokeniser, text: str, before: Sequence[int] = (), after: Sequence[int] = ()) -> Side:
    """A text of the user's."""
    return beside(text, tokeniser.pieces(text), before, after)


def written(tokeniser: Tokeniser, ids: Sequence[int], after: Sequence[int] = ()) -> Side:
    """What a model wrote, token by token: it may spell a text in other pieces than `encode` would."""
    text = tokeniser.decode(ids)
    return beside(text, spelled(tokeniser, ids, text), (), after)


def spelled(tokeniser: Tokeniser, ids: Sequence[int], text: str) -> list[Piece]:
    """The characters of decode(ids) = text that each id wrote. Each byte of a character points to all of it."""
    found, before = [], 0
    for place, id in enumerate(ids):
        so_far = tokeniser.decode(ids[: place + 1])
        # The first bytes of a character look like U+FFFD until its last one comes.
        found.append(Piece(id, tokeniser.name(id), before, max(before, min(len(so_far), len(text)))))
        before = alike(so_far, text)
    return found


def alike(one: str, other: str) -> int:
    """Characters that both begin with."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def separates(token: Token) -> bool:
    """A start, an end, or punctuation."""
    shown = token.text.strip(SPACE)
    punctuation = bool(shown) and all(unicodedata.category(character).startswith("P") for character in shown)
    return token.id in (BOS, EOS) or punctuation
