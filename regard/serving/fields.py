"""The fields of a request, in whichever of four forms a client sends them: JSON, a form, a form with files, a query."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any
from urllib.parse import parse_qs, unquote

from regard.serving.http import HttpRequest
from regard.serving.problems import Problem

DEEPEST = 32  # brackets within brackets
MOST_FIELDS = 100
FLAGS: dict[str, bool | None] = {
    "true": True,
    "1": True,
    "on": True,
    "false": False,
    "0": False,
    "off": False,
    "": None,
}
FORM, PARTS, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
# Each ends at its quote or with the data, so that no quote is tried twice.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = re.compile(rb"[^\[\]{}]+")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # what may be half a character
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))', re.IGNORECASE)
_ABOUT = re.compile(r"content-disposition:(.*)", re.IGNORECASE)
_ABOUT_FIELD = re.compile(r'[;\s](name|filename\*?)=(?:"([^"]*)"|([^\s;]*))', re.IGNORECASE)


@dataclass(frozen=True)
class Upload:
    name: str
    data: bytes


@dataclass(frozen=True)
class Fields:
    """Values by name; a value of a form is a string, or a list of them where it is there several times."""

    values: Mapping[str, Any]
    files: Mapping[str, Upload] = field(default_factory=dict)

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name)
        if value is None or value == "":
            if default is None:
                raise Problem(400, f"Invalid request: missing {name} parameter")
            return default
        if not isinstance(value, str):
            raise Problem(400, f"Invalid request: {name} must be a string")
        return value

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number from 0 to `most`; a form has it as digits."""
        value = self.values.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value, re.ASCII):
            value = int(value)
        if isinstance(value, float) and value.is_integer():  # 2.0 is a whole number to JSON
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Problem(400, f"Invalid request: {name} must be a whole number of at least 0")
        if value > most:
            raise Problem(422, f"Invalid request: {name} ({str(value)[:20]}) exceeds limit ({most})")
        return value

    def flag(self, name: str) -> bool:
        """Whether it is true; a form has it as a word. False where it is not given."""
        value = self.values.get(name)
        value = FLAGS.get(value.lower(), value) if isinstance(value, str) else value
        if value is None or isinstance(value, bool):
            return bool(value)
        raise Problem(400, f"Invalid request: {name} must be true or false")

    def choice(self, name: str, known: Sequence[str]) -> str | None:
        """One of the known words; none where it is not given."""
        value = self.text(name, "")
        if value and value not in known:
            raise Problem(400, f"Invalid request: {name} must be one of {', '.join(known)}")
        return value or None

    def texts(self, name: str) -> list[str] | str:
        """One string or a list of strings, as it was sent."""
        value = self.values.get(name)
        if value is None:
            raise Problem(400, f"Invalid request: missing {name} parameter")
        if isinstance(value, str):
            return value
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise Problem(400, f"Invalid request: {name} must be a string or a list of strings")
        return value

    def several(self, name: str, most: int) -> list[str]:
        """A list of strings, perhaps of one; nothing where it is not given."""
        if self.values.get(name) in (None, ""):
            return []
        found = self.texts(name)
        found = [found] if isinstance(found, str) else found
        if len(found) > most:
            raise Problem(422, f"Invalid request: {name} ({len(found)}) exceeds limit ({most})")
        return found

    def mapping(self, name: str, most: int) -> dict[str, str]:
        """An object of strings; a form has it as JSON."""
        value = self.values.get(name)
        if value is None or value == "":
            return {}
        if isinstance(value, str):
            value = parse_json(value.encode())
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise Problem(400, f"Invalid request: {name} must be an object of strings")
        if len(value) > most:
            raise Problem(422, f"Invalid request: {name} ({len(value)}) exceeds limit ({most})")
        return value


def read_fields(request: HttpRequest) -> Fields:
    """What the body says, and what it does not say from the query string."""
    query = from_form(request.query) if request.query else {}
    kind, _, _ = request.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    if not request.body:
        return Fields(query)
    if kind == PARTS:
        found = from_parts(request)
        return Fields({**query, **found.values}, found.files)
    if kind == FORM:
        try:
            return Fields({**query, **from_form(request.body.decode())})
        except UnicodeDecodeError:
            raise Problem(400, "Invalid request: the form is not UTF-8") from None
    if kind == JSON or not kind:
        found_object = parse_json(request.body)
        if not isinstance(found_object, dict):
            raise Problem(400, "Invalid JSON format")
        return Fields({**query, **found_object})
    raise Problem(415, f"Invalid request: content type {kind:.60} is not supported")


def parse_json(data: bytes) -> Any:
    """The value; refused where it is no JSON, too deep, says a key twice, or holds half a character or number."""
    if depth(data) > DEEPEST:
        raise Problem(400, "Invalid JSON format")
    try:
        found = json.loads(data.decode(), parse_constant=no_number, object_pairs_hook=each_once)
        if _HALF.search(data):
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # among them UnicodeError, JSONDecodeError, and endless digits
        raise Problem(400, "Invalid JSON format") from None
    return found


def depth(data: bytes) -> int:
    """How many brackets stand within each other at most, outside strings."""
    return max(accumulate(map(_STEPS.__getitem__, _NOT_BRACKETS.sub(b"", _STRING.sub(b"", data)))), default=0)


def no_number(name: str) -> None:
    raise ValueError(name)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def from_form(text: str) -> dict[str, Any]:
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Problem(400, "Invalid request: not a form that can be read") from None
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def from_parts(request: HttpRequest) -> Fields:
    """A form with files, as browsers send it (RFC 7578)."""
    values: dict[str, list[str]] = {}
    files: dict[str, Upload] = {}
    for head, data in parts_of(request):
        about = _ABOUT.search(head)
        known = {key.lower(): quoted or bare for key, quoted, bare in _ABOUT_FIELD.findall(about[1] if about else "")}
        if "name" not in known:
            raise Problem(400, "Invalid request: a part of the form has no name")
        name, file = known["name"], known.get("filename*", known.get("filename"))
        if file is not None:
            files[name] = Upload(unquote(file), data)
            continue
        try:
            values.setdefault(name, []).append(data.decode())
        except UnicodeDecodeError:
            raise Problem(400, f"Invalid request: {name:.60} is not UTF-8") from None
    return Fields({name: found if len(found) > 1 else found[0] for name, found in values.items()}, files)


def parts_of(request: HttpRequest) -> list[tuple[str, bytes]]:
    """The headers and the content of each part."""
    found = _BOUNDARY.search(request.headers.get("content-type", ""))
    border = b"\r\n--" + (found[1] or found[2]).encode("latin-1") if found else b""
    pieces = (b"\r\n" + request.body).split(border, MOST_FIELDS + 1)[1:] if border else []
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise Problem(400, "Invalid request: not a form that can be read")
    halves = [piece.partition(b"\r\n\r\n") for piece in pieces[:-1]]
    return [(head.decode(errors="replace"), data) for head, _, data in halves]
