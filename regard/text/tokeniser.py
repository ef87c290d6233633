"""What every tokeniser can do: text to ids and back, each id traced to its characters."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Piece:
    """One token and the characters [start, end) of the user's own text that it stands for."""

    id: int
    text: str
    start: int
    end: int


@runtime_checkable
class Tokeniser(Protocol):
    """`encode` adds no start or end token; `decode` leaves out the special ids, so decode(encode(x)) = x.

    A published tokeniser that normalises (`WordPiece`, `SentencePieces`) gives the normalised text back instead.
    """

    def __len__(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]: ...
    def pieces(self, text: str) -> list[Piece]: ...
    def name(self, id: int) -> str: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def save(self, folder: Path, stem: str) -> None: ...
