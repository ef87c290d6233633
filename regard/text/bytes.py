"""Text as its UTF-8 bytes: nothing to learn, nothing unknown, long sequences."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from regard.files import write_atomically
from regard.text.special import NAMES
from regard.text.tokeniser import Piece
from regard.text.unicode import begins_character, printable, utf8

SIZE = len(NAMES) + 256


class Bytes:
    """id = byte + 4. Bytes that are no UTF-8 decode to replacement characters (U+FFFD)."""

    def __len__(self) -> int:
        return SIZE

    def encode(self, text: str) -> list[int]:
        return [byte + len(NAMES) for byte in utf8(text)]

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:  # noqa: ARG002
        """`encode`: bytes have only one segmentation."""
        return self.encode(text)

    def pieces(self, text: str) -> list[Piece]:
        """One piece a byte; all bytes of a character point to that character."""
        found, end = [], 0
        for id in self.encode(text):
            end += begins_character(id - len(NAMES))
            found.append(Piece(id, self.name(id), end - 1, end))
        return found

    def name(self, id: int) -> str:
        if id < len(NAMES):
            return NAMES[id]
        byte = id - len(NAMES)
        return printable(chr(byte)) if 0x20 <= byte < 0x7F else f"<0x{byte:02X}>"

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(id - len(NAMES) for id in ids if id >= len(NAMES)).decode("utf-8", "replace")

    def save(self, folder: Path, stem: str) -> None:
        write_atomically(folder / f"{stem}.json", json.dumps({"kind": "bytes"}) + "\n")
