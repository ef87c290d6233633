"""How a tokeniser can write a phrase in the middle of a text, and what each of its tokens is there."""

from collections.abc import Sequence

from regard.text.special import NAMES
from regard.text.tokeniser import Tokeniser
from regard.text.words import joins

_CARRIER = "("  # what a phrase stands behind without a space


class Speller:
    """The tokens of a vocabulary as text. What comes after a token decides whether it ends a word: these two lists say.

    `begins[id]`: the token goes on with a word that was begun; `ends[id]`: another token may go on with its last word.
    """

    def __init__(self, tokeniser: Tokeniser) -> None:
        self._tokeniser = tokeniser
        self._before = _any_token(tokeniser)
        surfaces = [self._after([id]) for id in range(len(tokeniser))]
        self.begins = [bool(surface) and joins(surface[0]) for surface in surfaces]
        self.ends = [bool(surface) and joins(surface[-1]) for surface in surfaces]

    def spellings(self, phrase: str) -> list[tuple[int, ...]]:
        """Ids that write the phrase into a text: with a space before it, and onto what is there; none if they cannot.

        Each phrase has at most one of either kind. The tokeniser may know further ways to cut it.
        """
        spaced, glued = f" {phrase}", [piece for piece in self._tokeniser.pieces(_CARRIER + phrase) if piece.start]
        tried = [self._tokeniser.encode(phrase), self._tokeniser.encode(spaced), [piece.id for piece in glued]]
        found: dict[str, tuple[int, ...]] = {}
        for ids in tried:
            written = self._after(ids)
            if written in (phrase, spaced) and min(ids, default=0) >= len(NAMES):
                found.setdefault(written, tuple(ids))
        return list(found.values())

    def _after(self, ids: Sequence[int]) -> str:
        """What these ids add to a text that is not empty."""
        return self._tokeniser.decode([*self._before, *ids]).removeprefix(self._tokeniser.decode(self._before))


def _any_token(tokeniser: Tokeniser) -> list[int]:
    """A token that is text by itself; a first token may lose the space before it, so what follows it is looked at."""
    for id in range(len(NAMES), len(tokeniser)):
        text = tokeniser.decode([id])
        if text and "\ufffd" not in text:
            return [id]
    return []


def can_read(tokeniser: Tokeniser, phrase: str) -> bool:
    """Whether nothing of the phrase is lost on the way into ids."""
    return tokeniser.decode(tokeniser.encode(phrase)) == phrase
