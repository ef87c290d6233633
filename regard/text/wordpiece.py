"""WordPiece, as BERT was trained with: each word by the longest piece that fits, then the longest that goes on."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from regard.files import write_atomically
from regard.text.cleaning import Cleaning, chunks, words
from regard.text.special import NAMES, UNK
from regard.text.tokeniser import Piece
from regard.text.unicode import printable
from regard.text.vocabulary import Vocabulary

CONTINUED = "##"  # how a piece begins that goes on with a word
LONGEST_WORD = 100  # characters; a longer one is unknown
REMEMBERED = 50_000  # stretches between spaces
LONGEST_REMEMBERED = 64  # characters

Span = tuple[int, int, int]  # id, start, end


def longest_match(word: str, ids: Mapping[str, int], longest: int) -> list[Span]:
    """(id, start, end) of the pieces of `word`; one UNK for all of it when they do not reach its end.

    `longest` is the length of the longest name. Schuster & Nakajima 2012; Devlin et al. 2019.
    """
    found: list[Span] = []
    start = 0
    while start < len(word) <= LONGEST_WORD:
        prefix = CONTINUED if start else ""
        for end in range(min(len(word), start + longest), start, -1):
            id = ids.get(prefix + word[start:end])
            if id is not None:
                found.append((id, start, end))
                start = end
                break
        else:
            break
    return found if start == len(word) else [(UNK, 0, len(word))]


class WordPiece:
    """[CLS] and [SEP] are BOS and EOS, [MASK] is the last id. "[MASK]" in a text is the mask, the others are only text.

    `decode` gives the cleaned words back with a space between them, not the text.
    """

    def __init__(self, vocabulary: Vocabulary, cleaning: Cleaning) -> None:
        self._vocabulary = vocabulary
        self._cleaning = cleaning
        self._ids = vocabulary.ordinary
        self._longest = max(map(len, self._ids), default=0)
        self._spoken = range(len(NAMES), len(vocabulary) - len(vocabulary.last) - vocabulary.unused)
        self._remembered = lru_cache(REMEMBERED)(self._spell)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def cleaning(self) -> Cleaning:
        return self._cleaning

    @property
    def order(self) -> tuple[int, ...]:
        return self._vocabulary.order

    def rows(self, total: int) -> "WordPiece":
        return WordPiece(self._vocabulary.rows(total), self._cleaning)

    def __len__(self) -> int:
        return len(self._vocabulary)

    def encode(self, text: str) -> list[int]:
        return [id for id, _, _ in self._spans(text)]

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:  # noqa: ARG002
        """`encode`: a published model knows one segmentation."""
        return self.encode(text)

    def pieces(self, text: str) -> list[Piece]:
        """What was cleaned away, spaces included, is in no piece unless it is inside one."""
        return [Piece(id, self.name(id), start, end) for id, start, end in self._spans(text)]

    def name(self, id: int) -> str:
        return printable(self._vocabulary.shown[id])

    def decode(self, ids: Sequence[int]) -> str:
        """The pieces, one space between two words and none before . ? ! , or an English ending such as n't or 's."""
        names = [self._vocabulary.shown[id] for id in ids if id in self._spoken]
        joined = [name.removeprefix(CONTINUED) if name.startswith(CONTINUED) else f" {name}" for name in names[1:]]
        return "".join(map(_tidy, [*names[:1], *joined]))

    def save(self, folder: Path, stem: str) -> None:
        content = {
            "kind": "wordpiece",
            "vocabulary": self._vocabulary.content(),
            "cleaning": asdict(self._cleaning),
        }
        write_atomically(folder / f"{stem}.json", json.dumps(content) + "\n")

    def _spans(self, text: str) -> list[Span]:
        found: list[Span] = []
        for start, part, verbatim in self._vocabulary.parts(text):
            if verbatim is not None:
                found.append((verbatim, start, start + len(part)))
                continue
            for place, chunk in chunks(part):
                spell = self._remembered if len(chunk) <= LONGEST_REMEMBERED else self._spell
                found += [(id, start + place + a, start + place + b) for id, a, b in spell(chunk)]
        return found

    def _spell(self, chunk: str) -> list[Span]:
        found: list[Span] = []
        for word in words(chunk, self._cleaning):
            for id, start, end in longest_match("".join(c for c, _ in word), self._ids, self._longest):
                found.append((id, word[start][1], word[end - 1][1] + 1))
        return found


def _tidy(piece: str) -> str:
    """As the published decoder does it, piece by piece."""
    for ending in (".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"):
        piece = piece.replace(f" {ending}", ending)
    return piece
