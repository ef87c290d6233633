"""A service from its beginning to its end: workers begin, the port opens, a signal drains it."""

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.allocator import tunables
from regard.decoding.options import SearchOptions
from regard.errors import RecipeError, RegardError, ServingError
from regard.serving.app import App, Note, Settings
from regard.serving.batcher import Batcher
from regard.serving.comparing import Comparisons
from regard.serving.detection import Detector
from regard.serving.files import Documents
from regard.serving.http import Handler, HttpServer
from regard.serving.languages import canonical
from regard.serving.limits import HttpLimits, TextLimits
from regard.serving.notebook import append, opened
from regard.serving.pool import Pool, Start, WorkerLostError, WorkerRefusedError
from regard.serving.service import Served, Service
from regard.serving.watching import Watching, refuse_what_is_no_run

DRAIN_SECONDS = 30.0
KINDS = {kind.__name__: kind for kind in RegardError.__subclasses__()}
# The child looks for modules exactly where its parent does: not in the folder that happens to be current.
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from regard.serving.worker import main; main()"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # read when torch is imported
_DIRECTION = re.compile(r"(?:^|[-_.])([a-z]{2,3})[-_]([a-z]{2,3})$", re.IGNORECASE)


@dataclass(frozen=True)
class Direction:
    """A model and what it translates from and into; `task` is put before every text."""

    model: Path
    source: str
    target: str
    task: str = ""


def direction(argument: str) -> Direction:
    """ "models/en-de", whose name says it, or "en:de=models/mine"."""
    codes, equals, path = argument.partition("=")
    if equals:
        source, colon, target = codes.partition(":")
        if not (colon and source and target and path):
            raise RecipeError(f"{argument}: expected SOURCE:TARGET=MODEL, such as en:de=models/mine")
        return Direction(Path(path), canonical(source), canonical(target))
    found = _DIRECTION.search(Path(argument).name)
    if found is None:
        raise RecipeError(
            f"{argument}: its name does not say which languages it translates; if it is a translator, write them "
            f"before it, en:de={argument}"
        )
    return Direction(Path(argument), canonical(found[1]), canonical(found[2]))


@dataclass(frozen=True)
class ServeRequest:
    """What a user asks of `regard serve`."""

    models: Sequence[Direction]
    host: str = "127.0.0.1"
    port: int = 5000
    workers: int = 1  # processes of each model
    engine: str = "torch"
    shortlist: bool = False
    keys: tuple[str, ...] = ()
    prefix: str = ""
    suggestions: Path | None = None
    judgements: Path | None = None
    log_texts: bool = False
    watch: Path | None = None  # a run
    http: HttpLimits = field(default_factory=HttpLimits)
    texts: TextLimits = field(default_factory=TextLimits)


def note(entry: dict[str, Any]) -> None:
    """One line of the log: what happened, and not what anybody wrote, unless the user wants that too."""
    sys.stderr.write(json.dumps({"time": round(time.time(), 3), **entry}) + "\n")
    sys.stderr.flush()


async def run(request: ServeRequest, ready: Callable[[str], None], noted: Note = note) -> None:
    """Until SIGTERM or SIGINT; a second one does not wait. `ready` hears the address."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    known, settings = names(request.models), settings_of(request)
    pools: list[Pool] = []
    running: list[asyncio.Task[None]] = []
    try:
        served = []
        for one, called in zip(request.models, known, strict=True):
            pool = await begin(one, request, noted)
            pools.append(pool)
            batcher = Batcher(pool, request.texts.waiting)
            running.append(loop.create_task(batcher.run()))
            search = SearchOptions.model_validate(pool.greeting)
            served.append(Served(called, one.source, one.target, batcher, search))
        app = App(Service(served, request.texts, Detector()), Documents(request.texts), settings, noted)
        server = HttpServer(app.handle, app.refuse, request.http)
        port = await listen(server, request)
        ready(f"http://{request.host}:{port}{request.prefix}")
        await stop.wait()
        app.draining = True
        noted({"event": "draining"})
        if not await drained(server, stop):
            for pool in pools:
                pool.kill()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.gather(*(pool.end() for pool in pools))


async def drained(server: HttpServer, stop: asyncio.Event) -> bool:
    """Whether everything was answered before the time was up, or somebody asked again."""
    stop.clear()
    drain = asyncio.ensure_future(server.drain(DRAIN_SECONDS))
    again = asyncio.ensure_future(stop.wait())
    await asyncio.wait({drain, again}, return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if drain.done():
        return drain.result()
    drain.cancel()
    await asyncio.gather(drain, return_exceptions=True)
    return await server.drain(0)


async def begin(one: Direction, request: ServeRequest, noted: Note) -> Pool:
    options = json.dumps({"engine": request.engine, "shortlist": request.shortlist, "task": one.task})
    command = [sys.executable, "-c", START, json.dumps(sys.path), str(one.model), options]
    name = f"{one.source}-{one.target}"
    environment = {**ONE_THREAD, **tunables(os.environ)}
    pool = Pool(Start(command, environment), request.workers, lambda text: noted({"event": text, "model": name}))
    try:
        await pool.begin()
    except WorkerRefusedError as error:
        raise KINDS.get(error.kind, RegardError)(str(error)) from None
    except WorkerLostError:
        raise ServingError(f"{one.model}: its worker ended while it was loading, perhaps for want of memory") from None
    return pool


def names(models: Sequence[Direction]) -> list[str]:
    """What each is called in a file of judgements: by its folder, or by its whole path where two have one name."""
    for place, one in enumerate(models):
        if one in models[:place]:
            raise RecipeError(f"{one.model}: given twice for {one.source} to {one.target}; name different models")
    short = [one.model.resolve().name for one in models]
    return [name if short.count(name) == 1 else str(one.model) for name, one in zip(short, models, strict=True)]


def settings_of(request: ServeRequest) -> Settings:
    """Refuses files that cannot be written before any model is opened."""
    suggest = None if request.suggestions is None else suggesting(opened(request.suggestions))
    comparisons = None if request.judgements is None else Comparisons(opened(request.judgements))
    watching = None if request.watch is None else run_page(request.watch)
    return Settings(request.keys, request.prefix, suggest, comparisons, request.log_texts, watching)


def run_page(folder: Path) -> Handler:
    refuse_what_is_no_run(folder)
    return Watching(folder, within=True).handle


def suggesting(path: Path) -> Callable[[dict[str, str]], None]:
    return lambda given: append(path, json.dumps(given, ensure_ascii=False))


async def listen(server: HttpServer, request: ServeRequest) -> int:
    try:
        return await server.start(request.host, request.port)
    except OSError as error:
        raise ServingError(
            f"{request.host}:{request.port}: cannot listen there ({error.strerror}); choose another --port or --host"
        ) from None
