"""Files of a tokeniser, read with a limit; what cannot be read is one line that names the file."""

import json
from pathlib import Path
from typing import Any

from regard.errors import ModelFormatError

LARGEST = 200_000_000  # bytes; the largest published vocabularies have some 40 million


def read_bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise ModelFormatError(f"{path}: {size} bytes, expected at most {LARGEST}; this is no tokeniser")
        return path.read_bytes()
    except OSError as error:
        raise ModelFormatError(f"{path}: {error.strerror}; make the file readable") from error


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:  # ValueError: neither JSON nor UTF-8
        raise ModelFormatError(f"{path}: not valid JSON; copy the file again") from error


def read_lines(path: Path) -> list[str]:
    """The lines of a text; only \\n and \\r\\n end one, since a vocabulary may hold any other character."""
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{path}: byte {error.start} is not UTF-8; copy the file again") from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
