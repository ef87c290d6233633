"""Large files on all cores: one process for each, with one thread and a share of the lines.

A decoding step is many small products, and what two threads gain on those they lose in waiting for each other. Workers
begin in a fresh process, not as a fork of this one, whose thread pools would be copied without their threads. On Linux
that process reads the model and then forks, still with its one thread: the workers share the memory of the weights.
They speak JSON, a line for a line, over pipes of their own, so that nothing but text reaches them.
"""

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from io import TextIOBase
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

import torch

from regard.decoding.options import SearchOptions
from regard.engine import Candidate, Engine, Translation, load
from regard.errors import DecodingError, RegardError
from regard.faithful import Wishes, wishes_from

WINDOW = 2048  # lines sorted by length together; two windows are held at a time, however long the file
LARGE, SMALL = 32000, 3000  # characters given to a worker at once, at most and at least
ROUND = 0.65
KINDS: list[type[RegardError]] = [RegardError, *RegardError.__subclasses__()]
FORKS = sys.platform == "linux"  # elsewhere a fork of a process that has computed may hang, or there is none
ERRORS = {kind.__name__: kind for kind in KINDS}

# The child looks for modules exactly where its parent does: not in the folder that happens to be current.
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from regard.workers import main; main()"


class Workers:
    """Processes that hold one model. `with Workers(model, 2) as workers`: they end with the block, however it ends."""

    def __init__(self, model: Path, count: int, *, shortlist: bool = False, wishes: Wishes | None = None) -> None:
        self._workers = begin([str(model), json.dumps(shortlist), (wishes or Wishes()).to_json()], count)
        self._free: SimpleQueue[Worker] = SimpleQueue()
        self._pool = ThreadPoolExecutor(count)  # a thread does nothing but wait for its worker

    def __enter__(self) -> "Workers":
        try:
            searches = [worker.hear() for worker in self._workers]  # each says so once it has loaded the model
            self.search = SearchOptions.model_validate(searches[0])
        except BaseException:
            self.end()
            raise
        for worker in self._workers:
            self._free.put(worker)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._pool.shutdown(cancel_futures=True)  # the threads wait for processes that are gone: none hangs
        for worker in self._workers:
            worker.close()

    def translate(
        self, texts: Iterable[str], search: SearchOptions | None = None, prefix: str | None = None
    ) -> Iterator[Translation]:
        """One translation a text, in order, as an engine with one thread gives it for the same texts together.

        Which texts share a batch does not change what a search finds, but may change the last digits of a score.
        Reads ahead by two windows at most. The error of a worker is raised here.
        """
        wanted = {"search": (search or self.search).model_dump(), "prefix": prefix, "candidates": True}
        return (translation(text, rows) for text, rows in self._spread(texts, wanted))

    def write(self, texts: Iterable[str], search: SearchOptions | None = None) -> Iterator[str]:
        """The same, but the text of the best translation alone."""
        wanted = {"search": (search or self.search).model_dump(), "candidates": False}
        return (found for _, found in self._spread(texts, wanted))

    def _spread(self, texts: Iterable[str], wanted: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Each text with its answer."""
        lines, waiting = iter(texts), deque[tuple[list[str], list[tuple[list[int], Future[list[Any]]]]]]()
        while window := list(islice(lines, WINDOW)):
            parts = share(window, len(self._workers))
            asked = [(part, self._ask({"texts": [window[i] for i in part], **wanted})) for part in parts]
            waiting.append((window, asked))
            if len(waiting) == 2:
                yield from gather(*waiting.popleft())
        while waiting:
            yield from gather(*waiting.popleft())

    def _ask(self, request: dict[str, Any]) -> "Future[list[Any]]":
        def wait() -> list[Any]:
            worker = self._free.get()
            try:
                found: list[Any] = worker.ask(request)
            finally:
                self._free.put(worker)
            return found

        return self._pool.submit(wait)


def share(texts: Sequence[str], workers: int) -> list[list[int]]:
    """The places of the texts, longest first, in parts for several workers, each at least one text.

    In rounds, each worker can have an equal part of `ROUND` of what is left: large parts make large batches, and later
    small ones go to whoever is free first, so that all workers end together even if one is slower. Each text counts
    for a character more than it has.
    """
    parts: list[list[int]] = []
    left, size, enough = sum(map(len, texts)) + len(texts), 0, 0.0
    for place in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
        if size >= enough:
            if len(parts) % workers == 0:
                enough = min(LARGE, max(SMALL, ROUND * left / workers))
            parts.append([])
            size = 0
        parts[-1].append(place)
        size += len(texts[place]) + 1
        left -= len(texts[place]) + 1
    return parts


def gather(window: Sequence[str], parts: Sequence[tuple[list[int], "Future[list[Any]]"]]) -> Iterator[tuple[str, Any]]:
    """The texts with the answers of all parts, each at its place."""
    found = {place: one for places, future in parts for place, one in zip(places, future.result(), strict=True)}
    return ((text, found[place]) for place, text in enumerate(window))


def begin(words: Sequence[str], count: int) -> list["Worker"]:
    """So many workers: forks of one process, or processes of their own that speak over stdin and stdout."""
    pipes = [(os.pipe(), os.pipe()) for _ in range(count if FORKS and count > 1 else 0)]
    theirs = [(there[0], back[1]) for there, back in pipes]
    if not pipes:
        return [Worker(one, one.stdin, one.stdout) for one in (process(words, theirs) for _ in range(count))]
    root = process(words, theirs)
    for end in chain(*theirs):
        os.close(end)
    return [Worker(root, os.fdopen(there[1], "wb"), os.fdopen(back[0], "rb")) for there, back in pipes]


def process(words: Sequence[str], ends: Sequence[tuple[int, int]]) -> "subprocess.Popen[bytes]":
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # read when torch is imported
    return subprocess.Popen(
        [sys.executable, "-c", START, json.dumps(sys.path), json.dumps(ends), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **one_thread},
        pass_fds=tuple(chain(*ends)),
        start_new_session=True,  # Ctrl-C is for the parent, which then ends this
    )


class Worker:
    """One process, as its parent sees it: `process` is it, or what it is a fork of, which ends as soon as one does."""

    def __init__(self, process: "subprocess.Popen[bytes]", requests: Any, answers: Any) -> None:
        self.process, self.requests, self.answers = process, requests, answers

    def ask(self, request: Any) -> Any:
        try:
            self.requests.write(json.dumps(request).encode() + b"\n")
            self.requests.flush()
        except OSError:
            raise self.lost() from None
        return self.hear()

    def hear(self) -> Any:
        """What the next answer holds; a refusal is raised as the error that it was."""
        line = self.answers.readline()
        if not line.endswith(b"\n"):
            raise self.lost()
        answer = json.loads(line)
        if "error" in answer:
            raise ERRORS[answer["error"]](answer["message"])
        return answer["found"]

    def lost(self) -> DecodingError:
        return DecodingError(
            f"a worker process ended unexpectedly (exit code {self.process.wait()}), perhaps for want of memory; "
            "try --workers 1"
        )

    def kill(self) -> None:
        """With all forks, which are a group; without the first of them, they end when their pipes close."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL) if FORKS else self.process.kill()

    def close(self) -> None:
        for pipe in (self.requests, self.answers, self.process.stdin, self.process.stdout):
            with suppress(OSError):  # what could not be sent to the dead
                if pipe is not None:
                    pipe.close()
        self.process.wait()


def main() -> None:
    """What a worker process runs. Whatever else prints in it goes to stderr: stdout is for answers."""
    torch.set_num_threads(1)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        ends, model, shortlist = json.loads(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
        wishes = wishes_from(sys.argv[5])

        def open_engine() -> Engine:
            return wishes.over(load(model, shortlist=shortlist))

        if ends:
            fork(open_engine, ends)
        else:
            serve(open_engine, sys.stdin, answers)


def fork(open_engine: Callable[[], Engine], ends: Sequence[tuple[int, int]]) -> None:
    """One engine, and a fork that serves at each pair of ends. Ends when all have, or with the first that failed."""
    try:
        engine = open_engine()
    except RegardError as error:
        with os.fdopen(ends[0][1], "w", encoding="ascii") as answers:
            answers.write(json.dumps(refusal(error)) + "\n")
        return
    forks: list[int] = []
    for mine in ends:
        if not (pid := os.fork()):
            for end in chain(*ends):
                if end not in mine:
                    os.close(end)  # or nobody would notice when another fork is gone
            with os.fdopen(mine[0]) as requests, os.fdopen(mine[1], "w", encoding="ascii") as answers:
                serve(lambda: engine, requests, answers)
            os._exit(0)
        forks.append(pid)
    for end in chain(*ends):
        os.close(end)
    while forks:
        pid, status = os.wait()
        forks.remove(pid)
        if code := os.waitstatus_to_exitcode(status):
            for other in forks:
                os.kill(other, signal.SIGKILL)
            if code < 0:
                os.kill(os.getpid(), -code)
            os._exit(code)


def serve(open_engine: Callable[[], Engine], requests: Iterable[str], answers: TextIOBase) -> None:
    """Open the engine and say how it searches, then one answer a request until the parent is gone."""

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    with suppress(BrokenPipeError):
        try:
            engine = open_engine()
        except RegardError as error:
            say(refusal(error))
            return
        say({"found": engine.search.model_dump()})
        for request in requests:
            say(answer_to(engine, json.loads(request)))


def answer_to(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    texts, search = request["texts"], SearchOptions.model_validate(request["search"])
    try:
        if not request["candidates"]:
            return {"found": engine.write(texts, search)}
        prefix = request["prefix"]
        found = engine.translate(texts, search, None if prefix is None else [prefix] * len(texts))
    except RegardError as error:
        return refusal(error)
    return {"found": [[[c.text, c.score, c.log_probability, c.tokens] for c in one.candidates] for one in found]}


def refusal(error: RegardError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": str(error)}


def translation(text: str, rows: Sequence[Sequence[Any]]) -> Translation:
    return Translation(text, tuple(Candidate(said, score, total, tuple(names)) for said, score, total, names in rows))


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
