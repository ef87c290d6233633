"""Text as symbols between white space, from a closed set: the brackets and labels of linearised trees."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.files import write_atomically
from regard.text.characters import by_frequency
from regard.text.special import NAMES, UNK
from regard.text.tokeniser import Piece
from regard.text.unicode import printable

_SYMBOL = re.compile(r"\S+")


class Symbols:
    """Ids 4, 5, … are `symbols` in their order. Any other symbol is UNK, which `decode` leaves out.

    decode(encode(x)) = x for symbols with one space between two.
    """

    def __init__(self, symbols: Sequence[str]) -> None:
        self._symbols = list(symbols)
        self._ids = {symbol: id for id, symbol in enumerate(symbols, len(NAMES))}

    @classmethod
    def learn(cls, texts: Iterable[str]) -> "Symbols":
        """All symbols of `texts`, most frequent first, equals in code-point order."""
        return cls(by_frequency(Counter(symbol for text in texts for symbol in _SYMBOL.findall(text))))

    def __len__(self) -> int:
        return len(NAMES) + len(self._symbols)

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(symbol, UNK) for symbol in _SYMBOL.findall(text)]

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:  # noqa: ARG002
        """`encode`: symbols have only one segmentation."""
        return self.encode(text)

    def pieces(self, text: str) -> list[Piece]:
        """One piece a symbol; the white space between them is in none."""
        found = ((self._ids.get(match[0], UNK), match) for match in _SYMBOL.finditer(text))
        return [Piece(id, self.name(id), match.start(), match.end()) for id, match in found]

    def name(self, id: int) -> str:
        return NAMES[id] if id < len(NAMES) else printable(self._symbols[id - len(NAMES)])

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self._symbols[id - len(NAMES)] for id in ids if id >= len(NAMES))

    def save(self, folder: Path, stem: str) -> None:
        content = {"kind": "symbols", "symbols": self._symbols}
        write_atomically(folder / f"{stem}.json", json.dumps(content) + "\n")
