"""A published SentencePiece model, its pieces numbered by the vocabulary that the network was trained with."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from regard.errors import ModelFormatError
from regard.files import write_atomically
from regard.text.special import UNK
from regard.text.tokeniser import Piece
from regard.text.unicode import SPACE, printable, utf8
from regard.text.vocabulary import Vocabulary

Span = tuple[int, int, int]  # id, start, end


def open_model(model: bytes) -> SentencePieceProcessor:
    """The error is part of a sentence, which the reader of the file completes."""
    processor = SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
        names = piece_names(processor)
        _ = [int(name[3:5], 16) for id, name in enumerate(names) if processor.is_byte(id)]
        processor.encode("a")
    except (RuntimeError, ValueError) as error:  # ValueError: a piece that is no UTF-8 or names no byte
        raise ModelFormatError("not a SentencePiece model, or a damaged one; copy the file again") from error
    return processor


def piece_names(processor: SentencePieceProcessor) -> list[str]:
    return [processor.id_to_piece(id) for id in range(processor.get_piece_size())]


class SentencePieces:
    """Text is normalised as the model's file says, so `decode` gives back the normalised text.

    A piece has the id of its name, whether the model knows it or not, and is UNK where the vocabulary lacks it. Names
    that the vocabulary spells out (sentinels, language codes) are one id each wherever a text has them, and what
    stands between two of them is a text of its own.
    """

    def __init__(self, vocabulary: Vocabulary, model: bytes) -> None:
        self._vocabulary = vocabulary
        self._model = model
        self._processor = open_model(model)
        unspoken = {name for id, name in enumerate(piece_names(self._processor)) if self._processor.is_control(id)}
        self._ids = {name: id for name, id in vocabulary.ordinary.items() if name not in unspoken}
        self._surfaces = _surfaces(vocabulary, self._processor)
        self._spaced = self._processor.normalize("a").startswith(SPACE)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def model(self) -> bytes:
        """The published file as it came."""
        return self._model

    @property
    def order(self) -> tuple[int, ...]:
        return self._vocabulary.order

    @property
    def sentinels(self) -> range:
        """The last ids, which stand for what was taken out of a text: <extra_id_0>, <extra_id_1>, …"""
        return range(len(self) - len(self._vocabulary.last), len(self))

    def rows(self, total: int) -> "SentencePieces":
        return SentencePieces(self._vocabulary.rows(total), self._model)

    def __len__(self) -> int:
        return len(self._vocabulary)

    def encode(self, text: str) -> list[int]:
        found: list[int] = []
        for _, part, verbatim in self._vocabulary.parts(text):
            if verbatim is None:
                found += [self._ids.get(piece, UNK) for piece in self._processor.encode(_clean(part), out_type=str)]
            else:
                found.append(verbatim)
        return found

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:  # noqa: ARG002
        """`encode`: a published model knows one segmentation."""
        return self.encode(text)

    def pieces(self, text: str) -> list[Piece]:
        """Pieces of one character all point to it; a piece that is only the space before the first word is empty."""
        found = []
        for start, part, verbatim in self._vocabulary.parts(text):
            spans = self._spans(part) if verbatim is None else [(verbatim, 0, len(part))]
            found += [Piece(id, self.name(id), start + a, start + b) for id, a, b in spans]
        return found

    def name(self, id: int) -> str:
        return printable(self._vocabulary.shown[id])

    def decode(self, ids: Sequence[int]) -> str:
        text = b"".join(map(self._surfaces.__getitem__, ids)).decode("utf-8", "replace")
        return text.removeprefix(" ") if self._spaced else text

    def save(self, folder: Path, stem: str) -> None:
        """`{stem}.spm` is the published file as it came."""
        write_atomically(folder / f"{stem}.spm", self._model)
        content = {"kind": "sentencepiece", "vocabulary": self._vocabulary.content()}
        write_atomically(folder / f"{stem}.json", json.dumps(content) + "\n")

    def _spans(self, part: str) -> list[Span]:
        """SentencePiece gives a character that became several pieces to the last of them; here each has it."""
        mapping = self._processor.encode(_clean(part), return_type="offset_mapping")
        found = []
        for piece, (start, end) in zip(mapping["pieces"], mapping["offsets"], strict=True):
            if start == end and piece != SPACE:
                end = min(start + 1, len(part))
            found.append((self._ids.get(piece, UNK), start, end))
        return found


def _surfaces(vocabulary: Vocabulary, processor: SentencePieceProcessor) -> list[bytes]:
    """What each of our ids is in a text: nothing for the special ones and the sentinels."""
    found = [b""] * len(vocabulary)
    for name, id in vocabulary.ours.items():
        found[id] = utf8(name.replace(SPACE, " "))
    for piece, name in enumerate(piece_names(processor)):
        if processor.is_byte(piece) and name in vocabulary.ours:
            found[vocabulary.ours[name]] = bytes([int(name[3:5], 16)])
    for place in range(len(vocabulary.last)):
        found[-1 - place] = b""
    return found


def _clean(text: str) -> str:
    """`text` with U+FFFD for each half character, which UTF-8 cannot write."""
    return utf8(text).decode()
