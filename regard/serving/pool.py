"""Worker processes of one model: asked line by line, ended and begun again when they fail.

A crash, of native code or for want of memory, takes a worker with it and not the service. Workers speak JSON over their
own stdin and stdout, so that nothing but text reaches them.
"""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LONGEST_ANSWER = 64 << 20  # bytes
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before a failed worker begins again; doubled with each failure
STOP_SECONDS = 5.0


class WorkerLostError(Exception):
    """The process ended before it answered."""


class WorkerRefusedError(Exception):
    """The process answered that it will not: `kind` is the name of the error there."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Start:
    """How a process of this model begins."""

    command: Sequence[str]
    environment: dict[str, str]


class WorkerProcess:
    """One process, which answers one question at a time."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.process: asyncio.subprocess.Process | None = None

    async def begin(self) -> Any:
        """What the process says once it is ready."""
        self.process = await asyncio.create_subprocess_exec(
            *self.start.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **self.start.environment},
            limit=LONGEST_ANSWER,
            start_new_session=True,  # a Ctrl-C is for the service, which lets it finish
        )
        return await self._hear()

    async def ask(self, question: Any) -> Any:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            await self.process.stdin.drain()
        except ConnectionError:
            raise WorkerLostError from None
        return await self._hear()

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.returncode is not None

    def interrupt(self) -> None:
        """Has it give up what it is at; its answer is then a refusal."""
        self._signal(signal.SIGUSR1)

    async def end(self) -> None:
        """No question more; killed if it does not go by itself."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.gone()
        except TimeoutError:
            self.kill()
            await self.gone()

    async def gone(self) -> None:
        """Waits until there is no process any more."""
        if self.process is not None:
            await self.process.wait()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """Not by the process object: it would first look whether there is still anybody, and so take the news of an
        end from the one who waits for it."""
        if self.process is not None and not self.ended:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    async def _hear(self) -> Any:
        assert self.process is not None
        assert self.process.stdout is not None
        try:
            answer = json.loads(await self.process.stdout.readline())
        except ValueError:  # nothing, half an answer, or longer than any
            raise WorkerLostError from None
        if "error" in answer:
            raise WorkerRefusedError(answer["error"], answer["message"])
        return answer["found"]


class Pool:
    """So many processes of one model, of which `alive` can answer. `greeting` is what the first said when ready."""

    def __init__(self, start: Start, count: int, said: Callable[[str], None]) -> None:
        self.workers = [WorkerProcess(start) for _ in range(count)]
        self.free: asyncio.Queue[WorkerProcess] = asyncio.Queue()
        self.greeting: Any = None
        self.alive = 0
        self.restarts = 0
        self.ending = False
        self._said = said
        self._mending: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """All of them, or none: an error of the first that fails is raised."""
        begun = [asyncio.ensure_future(worker.begin()) for worker in self.workers]
        try:
            greetings = await asyncio.gather(*begun)
        except BaseException:
            for task in begun:
                task.cancel()
            await asyncio.gather(*begun, return_exceptions=True)
            self.kill()
            await self.end()
            raise
        self.greeting, self.alive = greetings[0], len(self.workers)
        for worker in self.workers:
            self.free.put_nowait(worker)

    async def ask(self, worker: WorkerProcess, question: Any) -> Any:
        """The answer of a worker that was taken from `free`, and goes back there; one that is lost is replaced."""
        try:
            found = await worker.ask(question)
        except WorkerRefusedError:
            self.free.put_nowait(worker)
            raise
        except BaseException:  # lost, or the wait was given up: its next answer would be for somebody else
            worker.kill()
            self.replace(worker)
            raise
        self.free.put_nowait(worker)
        return found

    def replace(self, worker: WorkerProcess) -> None:
        """Another process for one that is gone; it comes to `free` when it is ready."""
        self.alive -= 1
        if self.ending:
            return
        self.restarts += 1
        task = asyncio.get_running_loop().create_task(self._begin_again(worker))
        self._mending.add(task)
        task.add_done_callback(self._mending.discard)

    async def _begin_again(self, worker: WorkerProcess) -> None:
        pause = FIRST_PAUSE
        self._said("a worker was lost; beginning another")
        while True:
            await worker.gone()
            try:
                await worker.begin()
            except (WorkerLostError, WorkerRefusedError, OSError):
                worker.kill()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self.alive += 1
                self.free.put_nowait(worker)
                return

    def kill(self) -> None:
        """At once, whatever they are at: those who wait are told that their worker is lost."""
        self.ending = True
        for worker in self.workers:
            worker.kill()

    async def end(self) -> None:
        self.ending = True
        for task in self._mending:
            task.cancel()
        await asyncio.gather(*self._mending, return_exceptions=True)
        await asyncio.gather(*(worker.end() for worker in self.workers))
