"""`regard watch`: a run directory as a page that follows it: curves, attention as it forms, recipe, time left.

It only reads, and of a file at most as much as one answer may hold; no path is ever in an address.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError, ServingError, TrainingError
from regard.files import MANIFEST
from regard.serving.assets import asset
from regard.serving.fields import from_form, parse_json
from regard.serving.http import HttpRequest, HttpResponse, HttpServer
from regard.serving.limits import MEBIBYTE, HttpLimits
from regard.serving.problems import Problem, json_response
from regard.training.events import from_json

# The first two as regard/recipe/folder.py has them, which would bring torch: a page needs none.
RECIPE, LOG, FILM, REPORT = "recipe.yaml", "training.jsonl", "film.jsonl", "report.html"
SIDES = ("source", "target")
MOST = MEBIBYTE  # bytes of a file that one answer holds
DRAIN_SECONDS = 1.0
# A report is one file with a script of its own: it may run that, and reach nothing, not even this page.
ALONE = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)


# ---------------------------------------------------------------- a file that grows
@dataclass(frozen=True)
class Tail:
    """Whole lines of a file from a byte on; of those that cannot be read only the number.

    `story` says which file it is: one that was written anew (a resumed run cuts its log back) is another, and read from
    its beginning. `next` is the byte to go on from, `more` whether there is something now, `quiet` the seconds since
    somebody wrote.
    """

    story: str = ""
    restarted: bool = False
    next: int = 0
    more: bool = False
    quiet: float = 0.0
    lines: tuple[Any, ...] = ()
    damaged: int = 0


def tail(path: Path, story: str, start: int, read: Callable[[bytes], Any], most: int = MOST) -> Tail:
    """What has come since; a file that is not there yet has no lines. `read` refuses a line that is damaged."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            now = str(status.st_ino)
            restarted = now != story or start > status.st_size
            start = 0 if restarted else start
            file.seek(start)
            data = file.read(most)
    except FileNotFoundError:
        return Tail(restarted=bool(story))
    full = len(data) == most
    whole = data[: data.rfind(b"\n") + 1] or (data if full else b"")  # a line that no answer can hold is passed over
    lines, damaged = read_lines(whole, read)
    quiet = max(0.0, time.time() - status.st_mtime)
    return Tail(now, restarted, start + len(whole), full, quiet, tuple(lines), damaged)


def read_lines(data: bytes, read: Callable[[bytes], Any]) -> tuple[list[Any], int]:
    """What can be read, and how many lines cannot."""
    found, damaged = [], 0
    for line in data.split(b"\n"):
        try:
            if line.strip():
                found.append(read(line))
        except (Problem, DataError):
            damaged += 1
    return found, damaged


def event(line: bytes) -> Any:
    """An event of the log as it was written: what is not finite is the text "nan" or "inf". Paths are left out."""
    found = parse_json(line)
    from_json(line.decode())  # refuses what is none
    return {key: value for key, value in found.items() if key != "path"}


def frame(line: bytes) -> Any:
    """Where each layer of the model looked at one step, for a few sentences; old films have one map, `weights`."""
    found = parse_json(line)
    if not isinstance(found, dict) or not isinstance(found.get("step"), int):
        raise DataError("film: found a line without a step; expected what a run writes")
    pictures, layer = found.get("pictures"), found.get("layer", 1)
    if (
        not isinstance(pictures, list)
        or not isinstance(layer, int)
        or not all(is_picture(one, layer) for one in pictures)
    ):
        raise DataError("film: found no pictures; expected a weight of each layer for each target and source token")
    shown = [{**{key: one[key] for key in SIDES}, "layers": maps_of(one)} for one in pictures]
    return {"step": found["step"], "layer": layer, "pictures": shown}


def maps_of(picture: dict[str, Any]) -> Any:
    return picture.get("layers", [picture.get("weights")])


def is_picture(value: Any, layer: int) -> bool:
    """Tokens of two sides and, of each layer, a number for each pair of them; `layer` is there, or the only one."""
    if not isinstance(value, dict) or not all(isinstance(value.get(key), list) for key in SIDES):
        return False
    maps, rows, columns = maps_of(value), len(value["target"]), len(value["source"])
    if not isinstance(maps, list) or layer < 1 or not (len(maps) == 1 or layer <= len(maps)):
        return False
    return all(is_map(one, rows, columns) for one in maps)


def is_map(value: Any, rows: int, columns: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == rows
        and all(isinstance(row, list) and len(row) == columns for row in value)
        and all(isinstance(one, int | float) for row in value for one in row)
    )


# ---------------------------------------------------------------- the page
class Watching:
    """What a browser may ask of one run directory.

    `within`: the page is a part of that of a service, whose guests are not shown the recipe: it names files.
    """

    def __init__(self, folder: Path, *, within: bool = False) -> None:
        self.folder, self.within = folder, within
        self.routes: dict[str, Callable[[HttpRequest], HttpResponse]] = {
            "/": lambda _: asset("/static/watch.html"),
            "/run": self.run,
            "/events": lambda request: self.tail(request, LOG, event),
            "/film": lambda request: self.tail(request, FILM, frame),
            "/report": self.report,
        }

    async def handle(self, request: HttpRequest) -> HttpResponse:
        try:
            if request.method not in ("GET", "HEAD"):
                raise Problem(405, "Method not allowed")
            if request.path.startswith("/static/"):
                return asset(request.path)
            if request.path not in self.routes:
                raise Problem(404, "Not found")
            return self.routes[request.path](request)
        except Problem as problem:
            return problem.response()
        except OSError:
            return Problem(500, "The run cannot be read").response()

    def run(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002
        """What does not change from step to step; the figures once it is finished."""
        recipe, manifest = (self.text(name) for name in (RECIPE, MANIFEST))
        try:
            figures = None if manifest is None else parse_json(manifest.encode()).get("validation")
        except (Problem, AttributeError):
            figures = None
        found = {
            "name": self.folder.resolve().name,
            "recipe": None if self.within else recipe,
            "service": self.within,
            "finished": manifest is not None,
            "figures": figures,
            "report": (self.folder / REPORT).is_file(),
        }
        return json_response(found)

    def text(self, name: str) -> str | None:
        try:
            with (self.folder / name).open("rb") as file:
                return file.read(MOST).decode(errors="replace")
        except FileNotFoundError:
            return None

    def tail(self, request: HttpRequest, name: str, read: Callable[[bytes], Any]) -> HttpResponse:
        given = from_form(request.query)
        story, start = given.get("story", ""), given.get("from", "0")
        if not (isinstance(story, str) and isinstance(start, str) and start.isdecimal() and len(start) < 16):
            raise Problem(400, "Invalid request: from must be a number of bytes")
        return json_response(asdict(tail(self.folder / name, story, int(start), read)))

    def report(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002
        try:
            data = (self.folder / REPORT).read_bytes()
        except FileNotFoundError:
            raise Problem(404, "Not found") from None
        return HttpResponse(200, data, "text/html; charset=utf-8", [("Content-Security-Policy", ALONE)])


# ---------------------------------------------------------------- the command
def watch_run(folder: Path, host: str, port: int) -> None:
    """Until somebody stops it."""
    refuse_what_is_no_run(folder)
    asyncio.run(serve(folder, host, port, say))


def say(address: str) -> None:
    sys.stdout.write(f"watching at {address}\n")
    sys.stdout.flush()


def refuse_what_is_no_run(folder: Path) -> None:
    if not folder.is_dir():
        raise TrainingError(f"{folder}: no such directory; give the one that regard train --out names")
    if not (folder / RECIPE).is_file() and not (folder / LOG).is_file():
        raise TrainingError(f"{folder}: no run, there is neither {RECIPE} nor {LOG} in it; check the path")


def turned_away(status: int, reason: str) -> HttpResponse:
    """What the connection itself refuses."""
    return Problem(status, f"Invalid request: {reason}").response()


async def serve(folder: Path, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Until SIGTERM or SIGINT. `ready` hears the address."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    server = HttpServer(Watching(folder).handle, turned_away, HttpLimits())
    try:
        found = await server.start(host, port)
    except OSError as error:
        raise ServingError(
            f"{host}:{port}: cannot listen there ({error.strerror}); choose another --port or --host"
        ) from None
    ready(f"http://{host}:{found}")
    await stop.wait()
    await server.drain(DRAIN_SECONDS)
