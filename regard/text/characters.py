"""Text as its characters: the smallest vocabulary that one can read."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.files import write_atomically
from regard.text.special import NAMES, UNK
from regard.text.tokeniser import Piece
from regard.text.unicode import printable


def count_characters(lines: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line)
    return counts


def by_frequency(counts: Counter[str]) -> list[str]:
    """The characters, most frequent first, equals in code-point order."""
    return sorted(counts, key=lambda character: (-counts[character], character))


class Characters:
    """Ids 4, 5, … are `alphabet` in its order. Any other character is UNK, which `decode` leaves out."""

    def __init__(self, alphabet: Sequence[str]) -> None:
        self._alphabet = list(alphabet)
        self._ids = {character: id for id, character in enumerate(alphabet, len(NAMES))}

    def __len__(self) -> int:
        return len(NAMES) + len(self._alphabet)

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(character, UNK) for character in text]

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:  # noqa: ARG002
        """`encode`: characters have only one segmentation."""
        return self.encode(text)

    def pieces(self, text: str) -> list[Piece]:
        return [Piece(id, self.name(id), start, start + 1) for start, id in enumerate(self.encode(text))]

    def name(self, id: int) -> str:
        return NAMES[id] if id < len(NAMES) else printable(self._alphabet[id - len(NAMES)])

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._alphabet[id - len(NAMES)] for id in ids if id >= len(NAMES))

    def save(self, folder: Path, stem: str) -> None:
        content = {"kind": "characters", "characters": self._alphabet}
        write_atomically(folder / f"{stem}.json", json.dumps(content) + "\n")
