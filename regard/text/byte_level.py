"""Byte-level BPE, as GPT-2 was trained with: words by a pattern, their UTF-8 bytes, merged by rank."""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import groupby, pairwise
from pathlib import Path

from regard.errors import ModelFormatError
from regard.files import write_atomically
from regard.text.tokeniser import Piece
from regard.text.unicode import printable, utf8
from regard.text.vocabulary import Vocabulary

REMEMBERED = 50_000  # words
LONGEST_REMEMBERED = 64  # characters

# Unicode's White_Space. Python's own \s also has U+001C to U+001F, which the published pattern does not mean.
_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_STRETCH = re.compile(
    "'(?:[stmd]|re|ve|ll)"
    r"| ?[^\W_]+"  # letters and numbers: \w without _ is exactly \p{L} and \p{N}; cut between them below
    rf"| ?(?:_|[^\w{_SPACE}])+"
    rf"|[{_SPACE}]+(?![^{_SPACE}])"
    rf"|[{_SPACE}]+"
)


def _alphabet() -> list[str]:
    """The character that stands for each byte in the files: itself if it has a shape, else one from U+0100 on."""
    shaped = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in shaped else next(spare)) for byte in range(256)]


ALPHABET = _alphabet()
_BYTE = {character: byte for byte, character in enumerate(ALPHABET)}


def split_words(text: str) -> Iterator[str]:
    """`text` cut by GPT-2's pattern; joined, the words are the text.

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+, Radford et al. 2019.
    """
    for stretch in _STRETCH.findall(text):
        plain = stretch[1:] if stretch[0] == " " else stretch
        if plain.isalpha() or not plain or not plain[0].isalnum():
            yield stretch
            continue
        space = stretch[: len(stretch) - len(plain)]
        for _, run in groupby(plain, str.isalpha):
            yield space + "".join(run)
            space = ""


def merge(symbols: Sequence[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """`symbols` after every merge, the lowest rank first, the leftmost of equals first; O(n log n).

    Sennrich et al. 2016, algorithm 1.
    """
    found, end = list(symbols), len(symbols)
    before, after = list(range(-1, end - 1)), list(range(1, end + 1))
    heap = [(ranks[pair], place, pair) for place, pair in enumerate(pairwise(found)) if pair in ranks]
    heapify(heap)
    while heap:
        _, place, pair = heappop(heap)
        other = after[place]
        if other == end or (found[place], found[other]) != pair:
            continue  # an earlier merge took one of the two
        found[place], found[other] = found[place] + found[other], ""
        after[place] = after[other]
        if after[place] < end:
            before[after[place]] = place
        for start in (before[place], place):
            if start >= 0 and after[start] < end:
                pair = found[start], found[after[start]]
                if pair in ranks:
                    heappush(heap, (ranks[pair], start, pair))
    return [symbol for symbol in found if symbol]


class ByteLevel:
    """decode(encode(x)) = x for every Unicode text: nothing is unknown, and the name of EOS in a text is only text.

    Names that were added to the vocabulary later are one id each wherever a text has them; spaces beside them stay.
    """

    def __init__(self, vocabulary: Vocabulary, merges: Sequence[tuple[str, str]]) -> None:
        self._vocabulary = vocabulary
        self._merges = merges
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._ids = vocabulary.ordinary
        _check(self._ids, merges)
        self._bytes = [b""] * len(vocabulary)
        for name, id in vocabulary.ours.items():
            self._bytes[id] = bytes(map(_BYTE.__getitem__, name)) if _BYTE.keys() >= set(name) else utf8(name)
        for their in vocabulary.added:
            self._bytes[vocabulary.ours[vocabulary.names[their]]] = utf8(vocabulary.names[their])
        self._remembered = lru_cache(REMEMBERED)(self._spell)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def merges(self) -> Sequence[tuple[str, str]]:
        return self._merges

    @property
    def order(self) -> tuple[int, ...]:
        return self._vocabulary.order

    def rows(self, total: int) -> "ByteLevel":
        return ByteLevel(self._vocabulary.rows(total), self._merges)

    def __len__(self) -> int:
        return len(self._vocabulary)

    def encode(self, text: str) -> list[int]:
        found: list[int] = []
        for _, part, verbatim in self._vocabulary.parts(text):
            if verbatim is not None:
                found.append(verbatim)
                continue
            for word in split_words(part):
                found += self._remembered(word) if len(word) <= LONGEST_REMEMBERED else self._spell(word)
        return found

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:  # noqa: ARG002
        """`encode`: a published model knows one segmentation."""
        return self.encode(text)

    def pieces(self, text: str) -> list[Piece]:
        """A piece that holds only some bytes of a character points to the whole character."""
        owners = [place for place, character in enumerate(text) for _ in utf8(character)]
        found, start = [], 0
        for id in self.encode(text):
            end = start + len(self._bytes[id])
            found.append(Piece(id, self.name(id), owners[start], owners[end - 1] + 1))
            start = end
        return found

    def name(self, id: int) -> str:
        try:
            return printable(self._bytes[id].decode()) or self._vocabulary.shown[id]
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in self._bytes[id])

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(map(self._bytes.__getitem__, ids)).decode("utf-8", "replace")

    def save(self, folder: Path, stem: str) -> None:
        merges = [list(pair) for pair in self._merges]
        content = {"kind": "byte-level", "vocabulary": self._vocabulary.content(), "merges": merges}
        write_atomically(folder / f"{stem}.json", json.dumps(content) + "\n")

    def _spell(self, word: str) -> tuple[int, ...]:
        return tuple([self._ids[symbol] for symbol in merge([ALPHABET[byte] for byte in utf8(word)], self._ranks)])


def _check(ids: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> None:
    missing = [f"0x{byte:02X}" for byte, character in enumerate(ALPHABET) if character not in ids]
    if missing:
        raise ModelFormatError(
            f"{len(missing)} of the 256 bytes have no id ({', '.join(missing[:3])}, …); "
            "expected a byte-level vocabulary"
        )
    for left, right in merges:
        for name in (left, right, left + right):
            if name not in ids:
                raise ModelFormatError(
                    f"the merge {left!r} {right!r} needs {name!r}, which is not in the vocabulary; "
                    "take both files from the same model"
                )
