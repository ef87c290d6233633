"""A tokeniser read back from its folder; whatever is in there, the answer is a tokeniser or one line."""

from pathlib import Path
from typing import Any

from regard.errors import ModelFormatError
from regard.text.byte_level import ByteLevel
from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.cleaning import Cleaning
from regard.text.pieces import SentencePieces
from regard.text.reading import read_bytes, read_json
from regard.text.subwords import Subwords
from regard.text.symbols import Symbols
from regard.text.tokeniser import Tokeniser
from regard.text.vocabulary import parse, strings
from regard.text.wordpiece import WordPiece


def load(folder: Path, stem: str) -> Tokeniser:
    """What `save(folder, stem)` wrote: `{stem}.model` for our subwords, `{stem}.json` for every other kind."""
    model, small = folder / f"{stem}.model", folder / f"{stem}.json"
    if not model.is_file() and not small.is_file():
        raise ModelFormatError(f"{folder}: no tokeniser, neither {model.name} nor {small.name}; copy the folder again")
    path = model if model.is_file() else small
    content = read_bytes(model) if path == model else read_json(small)
    try:
        return Subwords(content) if path == model else _build(content, folder / f"{stem}.spm")
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from error


def _build(content: Any, pieces: Path) -> Tokeniser:
    """The tokeniser that a `{stem}.json` describes; `pieces` is the file beside it that only one kind has."""
    match content:
        case {"kind": "bytes"}:
            return Bytes()
        case {"kind": "characters", "characters": [*alphabet]} if _is_alphabet(alphabet):
            return Characters(alphabet)
        case {"kind": "symbols", "symbols": [*symbols]} if _are_symbols(symbols):
            return Symbols(symbols)
        case {"kind": "byte-level", "vocabulary": vocabulary, "merges": [*merges]} if all(map(_is_pair, merges)):
            return ByteLevel(parse(vocabulary), [(left, right) for left, right in merges])
        case {
            "kind": "wordpiece",
            "vocabulary": vocabulary,
            "cleaning": {"lower": bool(lower), "strip": bool(strip), "ideographs": bool(ideographs)},
        }:
            return WordPiece(parse(vocabulary), Cleaning(lower, strip, ideographs))
        case {"kind": "sentencepiece", "vocabulary": vocabulary}:
            return SentencePieces(parse(vocabulary), read_bytes(pieces))
    raise ModelFormatError(
        "expected a kind of tokeniser (bytes, characters, symbols, byte-level, wordpiece or sentencepiece) "
        "with all that belongs to it; copy the file again"
    )


def _is_alphabet(found: list[Any]) -> bool:
    return strings(found) and all(len(c) == 1 for c in found) and len(set(found)) == len(found)


def _are_symbols(found: list[Any]) -> bool:
    return strings(found) and all([symbol] == symbol.split() for symbol in found) and len(set(found)) == len(found)


def _is_pair(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 2 and strings(found) and all(found)
