"""Text streams of the commands: lines in, lines or JSON out."""

import gzip
import json
import lzma
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, TypeVar

from regard.data.readers import read_lines, read_stream
from regard.errors import DataError

T = TypeVar("T")


def one_line(text: str) -> str:
    """A model that knows bytes can write a line break, which would shift every later line of the output."""
    return text.replace("\n", " ").replace("\r", " ")


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def chunked(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def input_lines(path: Path | None) -> Iterator[str]:
    """Lines of a file, or of stdin; there may be none."""
    if path is None:
        return read_stream(sys.stdin.buffer, "stdin")
    if path.is_file() and path.stat().st_size == 0:
        return iter(())
    return read_lines(path)


def input_text(path: Path | None) -> str:
    """All of a file, or of stdin, with its white space as it is."""
    name, raw = ("stdin", sys.stdin.buffer.read()) if path is None else (str(path), path.read_bytes())
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}, line {line}: not UTF-8; convert the text, for example with iconv") from None
    if "\0" in text:
        raise DataError(f"{name}, line {text[: text.index(chr(0))].count(chr(10)) + 1}: a NUL character; is this text?")
    return text


def refuse_loss(out: Path | None, *read: Path | None) -> None:
    """What is read must not be written over."""
    if out is not None and any(path is not None and path.resolve() == out.resolve() for path in read):
        raise DataError(f"{out}: is read here, and would be lost; choose another name for what is written")


@contextmanager
def writing(path: Path | None) -> Iterator[IO[str]]:
    """stdout, or a file that appears under its name only when it is complete; .gz and .xz are packed."""
    if path is None:
        yield sys.stdout
        return
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        with fresh.open("wb") as file, packing(path, file) as out:
            yield out
        fresh.replace(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        with suppress(OSError):
            fresh.unlink()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """What took long to make, as `writing` does it; a folder that is missing is made."""
    with suppress(OSError):  # said when the file is opened
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as out:
        out.writelines(f"{line}\n" for line in lines)


def packing(path: Path, file: BinaryIO) -> TextIOWrapper:
    """Text into the open file, packed as the name says: readers go by it."""
    match path.suffix:
        case ".gz":  # without name and time: the same text gives the same bytes
            return TextIOWrapper(gzip.GzipFile("", "wb", fileobj=file, mtime=0), encoding="utf-8", newline="\n")
        case ".xz":
            return TextIOWrapper(lzma.open(file, "wb"), encoding="utf-8", newline="\n")
        case _:
            return TextIOWrapper(file, encoding="utf-8", newline="\n")
