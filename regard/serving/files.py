"""Documents that are sent, translated and fetched again: text and subtitles, kept for minutes under secret names."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from regard.serving.fields import Upload
from regard.serving.limits import TextLimits
from regard.serving.problems import Problem
from regard.serving.service import SHORTEST_WAIT, TOGETHER, Said, Service, Wanted

KEPT_SECONDS, KEPT_FILES = 600.0, 64
_TIMES = re.compile(r"(?:\d{2}:)?\d{2}:\d{2}[.,]\d{3} --> .*")
Write = Callable[[str], bytes]


@dataclass(frozen=True)
class Kept:
    name: str
    data: bytes
    until: float


class Documents:
    """Translated files in memory: as many as `KEPT_FILES`, the oldest go first."""

    formats = (".txt", ".srt", ".vtt")

    def __init__(self, limits: TextLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.clock = limits, clock
        self.kept: dict[str, Kept] = {}

    def read(self, upload: Upload) -> tuple[str, Write]:
        """The text of a document, and how a text becomes such a document again."""
        if not upload.name.lower().endswith(self.formats):
            raise Problem(400, "Invalid request: file format not supported")
        if len(upload.data) > self.limits.file_bytes:
            raise Problem(413, f"Invalid request: file of more than {self.limits.file_bytes:,} bytes")
        mark = b"\xef\xbb\xbf" if upload.data.startswith(b"\xef\xbb\xbf") else b""
        try:
            text = upload.data.removeprefix(mark).decode()
        except UnicodeDecodeError:
            raise Problem(400, "Invalid request: the file is not UTF-8") from None
        if len(text) > self.limits.file_characters:
            raise Problem(
                400, f"Invalid request: request ({len(text)}) exceeds text limit ({self.limits.file_characters})"
            )
        return text, lambda said: mark + said.encode()

    async def translate(self, service: Service, source: str, target: str, text: str, wanted: Wanted) -> str:
        """Line by line; numbers and times of subtitles stay. A document can wait where others cannot."""
        try:
            async with asyncio.timeout(self.limits.file_seconds):
                return await translated(service, source, target, text, wanted)
        except TimeoutError:
            raise Problem(504, f"Timeout: no answer within {self.limits.file_seconds:g} seconds") from None

    def keep(self, name: str, target: str, data: bytes) -> str:
        """Under a name that nobody can guess, which says what was in it."""
        now = self.clock()
        self.kept = {key: one for key, one in self.kept.items() if one.until > now}
        while len(self.kept) >= KEPT_FILES:
            del self.kept[next(iter(self.kept))]
        stem, _, ending = name.rpartition(".")
        safe = re.sub(r"[^A-Za-z0-9_-]+", "_", stem.rpartition("/")[2])[:60] or "file"
        named = f"{safe}.{target}.{ending.lower()}"
        place = f"{secrets.token_urlsafe(24)}.{named}"
        self.kept[place] = Kept(named, data, now + KEPT_SECONDS)
        return place

    def take(self, place: str) -> Kept:
        found = self.kept.get(place)
        if found is None or found.until <= self.clock():
            raise Problem(404, "Not found")
        return found


async def translated(service: Service, source: str, target: str, text: str, wanted: Wanted) -> str:
    lines = re.split(r"(\r?\n)", text)
    spoken = [place for place, line in enumerate(lines) if line.strip() and not timing(line)]
    for first in range(0, len(spoken), TOGETHER):
        places = spoken[first : first + TOGETHER]
        asked = [lines[place] for place in places]
        while (found := await at_once(service, source, target, asked, wanted)) is None:
            await asyncio.sleep(SHORTEST_WAIT)
        for place, said in zip(places, found, strict=True):
            lines[place] = said.text
    return "".join(lines)


async def at_once(service: Service, source: str, target: str, texts: list[str], wanted: Wanted) -> list[Said] | None:
    """None where too many others wait."""
    try:
        return await service.translate([source] * len(texts), target, texts, wanted)
    except Problem as problem:
        if problem.status != 429:
            raise
        return None


def timing(line: str) -> bool:
    """Whether it is the number or the time of a subtitle, or the first line of such a file."""
    line = line.strip()
    return line.isdigit() or line == "WEBVTT" or _TIMES.fullmatch(line) is not None
