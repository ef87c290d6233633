"""A tokeniser read back from its folder; whatever is in there, the answer is a tokeniser or one line."""

import json
from pathlib import Path
from typing import Any

from regard.errors import ModelFormatError
from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.subwords import Subwords
from regard.text.tokeniser import Tokeniser


def load(folder: Path, stem: str) -> Tokeniser:
    """What `save(folder, stem)` wrote: `{stem}.model` for subwords, `{stem}.json` for characters and bytes."""
    model, small = folder / f"{stem}.model", folder / f"{stem}.json"
    if model.is_file():
        return _load_subwords(model)
    if small.is_file():
        return _load_small(small)
    raise ModelFormatError(f"{folder}: no tokeniser, neither {model.name} nor {small.name}; copy the folder again")


def _load_subwords(path: Path) -> Subwords:
    try:
        return Subwords(_read(path))
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from error


def _load_small(path: Path) -> Tokeniser:
    try:
        content = json.loads(_read(path))
    except (ValueError, RecursionError) as error:  # ValueError: neither JSON nor UTF-8
        raise ModelFormatError(f"{path}: not valid JSON; copy the file again") from error
    match content:
        case {"kind": "bytes"}:
            return Bytes()
        case {"kind": "characters", "characters": [*alphabet]} if _is_alphabet(alphabet):
            return Characters(alphabet)
    raise ModelFormatError(f"{path}: expected the kind bytes, or characters with a list of them; copy the file again")


def _is_alphabet(found: list[Any]) -> bool:
    return all(isinstance(c, str) and len(c) == 1 for c in found) and len(set(found)) == len(found)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelFormatError(f"{path}: {error.strerror}; make the file readable") from error
