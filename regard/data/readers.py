"""Files to pairs: line n stays line n, and whatever is no text is named by file and line.

A line ends at "\\n" only (one "\\r" before it is dropped); U+2028, U+0085 and form feeds are characters like others.
"""

import gzip
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from itertools import zip_longest
from pathlib import Path
from typing import Protocol, TypeVar, cast, runtime_checkable

from regard.data.options import BadLines
from regard.data.pairs import Pair
from regard.errors import DataError

LIMIT = 100_000  # characters of one line
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # what a JSON escape can smuggle in
JSON_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}

Record = TypeVar("Record")


@runtime_checkable
class Stream(Protocol):
    def readline(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that is no text: `reason` is what the report counts, `message` what the user reads."""

    reason: str
    message: str


def read_lines(
    path: Path, bad_lines: BadLines = "refuse", dropped: Counter[str] | None = None, limit: int = LIMIT
) -> Iterator[str]:
    """The lines of a plain, .gz or .xz file. With "drop", bad ones are left out and counted in `dropped`."""
    for line in _scan(path, limit):
        if isinstance(line, Fault):
            _handle(line, bad_lines, dropped)
        else:
            yield line


def read_stream(file: Stream, name: str, limit: int = LIMIT) -> Iterator[str]:
    """The lines of an open stream such as stdin, which may be empty; a bad line is refused."""
    for number, raw in enumerate(_cut(file, 4 * limit), start=1):
        line = _text(raw, f"{name}, line {number}", limit)
        if isinstance(line, Fault):
            raise DataError(f"{line.message}; repair the line")
        yield line


def read_parallel(
    source: Path, target: Path, bad_lines: BadLines = "refuse", dropped: Counter[str] | None = None, limit: int = LIMIT
) -> Iterator[Pair]:
    """Line n of one file with line n of the other; a bad line takes its partner with it, so no pair shifts."""
    sources = targets = 0
    for left, right in zip_longest(_scan(source, limit), _scan(target, limit)):
        sources += left is not None
        targets += right is not None
        if left is None or right is None:
            continue  # one file has ended: all we still want to know is how long the other is
        if isinstance(left, Fault) or isinstance(right, Fault):
            _handle(left if isinstance(left, Fault) else cast(Fault, right), bad_lines, dropped)
        else:
            yield Pair(left, right)
    if sources != targets:
        raise DataError(f"{source} has {sources} lines, {target} has {targets}; parallel files must have equally many")


def read_tsv(
    path: Path, bad_lines: BadLines = "refuse", dropped: Counter[str] | None = None, limit: int = LIMIT
) -> Iterator[Pair]:
    """Source, one tab, target on each line; there is no header and no quoting."""
    return read_records(path, _split, bad_lines, dropped, limit)


def read_jsonl(
    path: Path,
    source_key: str = "source",
    target_key: str = "target",
    bad_lines: BadLines = "refuse",
    dropped: Counter[str] | None = None,
    limit: int = LIMIT,
) -> Iterator[Pair]:
    """One JSON object on each line with a text under either key; other keys are ignored."""
    return read_records(path, partial(_pick, keys=(source_key, target_key)), bad_lines, dropped, limit)


def read_records(
    path: Path,
    parse: Callable[[str, str], Record | Fault],
    bad_lines: BadLines = "refuse",
    dropped: Counter[str] | None = None,
    limit: int = LIMIT,
) -> Iterator[Record]:
    """What `parse` makes of each line, given the line and the place to name should it be wrong."""
    for number, line in enumerate(_scan(path, limit), start=1):
        record = line if isinstance(line, Fault) else parse(line, f"{path}, line {number}")
        if isinstance(record, Fault):
            _handle(record, bad_lines, dropped)
        else:
            yield record


def _split(line: str, place: str) -> Pair:
    columns = line.split("\t")
    if len(columns) != 2:
        found = "no tab" if len(columns) == 1 else f"{len(columns) - 1} tabs"
        raise DataError(f"{place}: found {found}, expected source, one tab, target; keep two columns on every line")
    return Pair(columns[0], columns[1])


def _pick(line: str, place: str, keys: tuple[str, str]) -> Pair | Fault:
    record = parse_object(line, place, keys, "source_key and target_key")
    source, target = (as_text(record[key], f"{place}: {key!r}") for key in keys)
    if isinstance(source, Fault) or isinstance(target, Fault):
        return source if isinstance(source, Fault) else cast(Fault, target)
    return Pair(source, target)


def parse_object(line: str, place: str, keys: Sequence[str], settings: str) -> dict[str, object]:
    """The JSON object of one line, which has every one of the keys; `settings` is where a user says which they are."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError(f"{place}: found {line[:40]!r}, which is not JSON; expected one object on each line") from None
    if not isinstance(record, dict):
        expected = " and ".join(map(repr, keys))
        raise DataError(f"{place}: found {_named(record)}, expected an object with keys {expected}")
    for key in keys:
        if key not in record:
            found = ", ".join(map(repr, list(record)[:8])) or "an empty object"
            raise DataError(f"{place}: no key {key!r}, found {found}; set {settings}")
    return record


def as_text(value: object, place: str) -> str | Fault:
    """A value of a JSON object, if it is a text and all of it can be written as UTF-8."""
    if not isinstance(value, str):
        raise DataError(f"{place} is {_named(value)}, expected a text")
    if bad := NOT_TEXT.search(value):
        return Fault("bad encoding", f"{place} contains U+{ord(bad[0]):04X}, which is no character of a text")
    return value


def _named(value: object) -> str:
    return JSON_NAMES.get(type(value), "a number")


def _handle(fault: Fault, bad_lines: BadLines, dropped: Counter[str] | None) -> None:
    if bad_lines == "refuse":
        raise DataError(f"{fault.message}; repair the file (in training, data.bad_lines=drop leaves such pairs out)")
    if dropped is not None:
        dropped[fault.reason] += 1


def _scan(path: Path, limit: int) -> Iterator[str | Fault]:
    """Every line of the file in order, as its text or as what is wrong with it; never more than one line in memory."""
    number = 0
    for number, raw in enumerate(_raw_lines(path, 4 * limit), start=1):
        yield _text(raw, f"{path}, line {number}", limit)
    if number == 0:
        raise DataError(f"{path}: the file is empty; expected one sentence on each line")


def _text(raw: bytes | None, place: str, limit: int) -> str | Fault:
    if raw is None:
        return Fault("too long", f"{place}: found more than {limit} characters without a line break")
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = " (the file looks like UTF-16)" if raw.startswith(UTF16) else ""
        found = f"byte 0x{raw[error.start]:02X} at position {error.start + 1}"
        return Fault("bad encoding", f"{place}: found {found}, which is not UTF-8{hint}")
    if "\0" in line:
        return Fault("bad encoding", f"{place}: found a NUL character, expected text")
    if len(line) > limit:
        return Fault("too long", f"{place}: found {len(line)} characters, expected at most {limit}")
    return line


def _raw_lines(path: Path, limit: int) -> Iterator[bytes | None]:
    with opened(path) as file:
        yield from _cut(file, limit)


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a plain, .gz or .xz file; a file that is missing, damaged or unreadable is named."""
    try:
        with _unpacked(path) as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise DataError(f"{path}: cut short or damaged, cannot be unpacked; copy or pack it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the file") from None


def _cut(file: Stream, limit: int) -> Iterator[bytes | None]:
    """Lines without their ends; None stands for one of more than `limit` bytes, which is skipped piece by piece."""
    size = limit + len(BOM) + len(b"\r\n")
    raw = file.readline(size).removeprefix(BOM)
    while raw:
        if raw.endswith(b"\n") or len(raw) < size - len(BOM):
            yield raw.removesuffix(b"\n").removesuffix(b"\r")
        else:
            yield None
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(size)
        raw = file.readline(size)


def _unpacked(path: Path) -> BufferedIOBase:
    if path.is_dir():
        raise DataError(f"{path}: is a folder, expected a file; name the file inside it")
    match path.suffix:
        case ".gz":
            return gzip.open(path)
        case ".xz":
            return lzma.open(path)
        case _:
            return path.open("rb")
