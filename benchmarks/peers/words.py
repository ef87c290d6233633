"""Text to pieces and back for the peers: SentencePiece with the file of our model, as their users have it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor


def opened(plan: Mapping[str, Any], side: str) -> SentencePieceProcessor:
    """The pieces of one side of the model."""
    folder = Path(plan["weights"]).parent
    shared = folder / "shared.model"
    return SentencePieceProcessor(model_file=str(shared if shared.exists() else folder / f"{side}.model"))


class Words:
    """Whole lists at a time, on all cores, which is the fastest that SentencePiece offers."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.source, self.target = (opened(plan, side) for side in ("source", "target"))
        assert self.ids(plan["texts"]) == plan["sources"], "other pieces than ours"

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self.source.encode(list(texts))
        return found

    def names(self, texts: Sequence[str]) -> list[list[str]]:
        found: list[list[str]] = self.source.encode(list(texts), out_type=str)
        return found

    def texts(self, outputs: Sequence[Sequence[int]] | Sequence[Sequence[str]]) -> list[str]:
        found: list[str] = self.target.decode(list(outputs))
        return found
