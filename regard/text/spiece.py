"""A SentencePiece file made from a unigram vocabulary that was published in another form."""

import struct
from collections.abc import Sequence

# The fields of sentencepiece_model.proto that encoding and decoding need.
_PIECES, _TRAINER, _NORMALISER = 1, 2, 3
_NAME, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _UNIGRAM = 3, 1
_CHARSMAP = 2
NORMAL, UNKNOWN, CONTROL = 1, 2, 3


def write_unigram(pieces: Sequence[tuple[str, float, int]], charsmap: bytes) -> bytes:
    """A model of (name, score, type); `charsmap` is the normalisation, empty for none."""
    written = [
        _message(_NAME, name.encode()) + _tag(_SCORE, 5) + struct.pack("<f", score) + _number(_TYPE, kind)
        for name, score, kind in pieces
    ]
    return (
        b"".join(_message(_PIECES, piece) for piece in written)
        + _message(_TRAINER, _number(_MODEL_TYPE, _UNIGRAM))
        + _message(_NORMALISER, _message(_CHARSMAP, charsmap))
    )


def _message(field: int, content: bytes) -> bytes:
    return _tag(field, 2) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _tag(field, 0) + _varint(value)


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    found = []
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
