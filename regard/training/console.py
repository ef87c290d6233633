"""The reader of events that people watch: a bar on a terminal, plain lines elsewhere; always on standard error."""

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Protocol, cast, runtime_checkable

from rich.console import Console as Terminal
from rich.progress import BarColumn, Progress, TextColumn

from regard.training.events import (
    Event,
    Finished,
    MemoryChecked,
    Saved,
    Skipped,
    Started,
    Stepped,
    Stopped,
    Validated,
)
from regard.training.logs import Reader

QUIET = 10.0  # seconds between two plain lines about steps
ENDINGS = {
    "interrupted": "interrupted; the same command with --resume goes on from here",
    "early": "stopped early: validation no longer improves",
    "done": "training is done",
}


@runtime_checkable
class Stream(Protocol):
    """As much of a text file as a console needs."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...
    def isatty(self) -> bool: ...


def duration(seconds: float) -> str:
    """5025 → "1h23m", 125 → "2m05s", 9 → "9s"."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def sentence(event: Event) -> str | None:
    """One line about an event; none for a step that went well and for a checkpoint."""
    match event:
        case Started():
            if event.budget is not None:
                long = duration(event.budget)
            else:
                long = f"{event.epochs:g} epochs" if event.steps is None else f"{event.steps} steps"
            since = "" if event.resumed_from is None else f", going on after step {event.resumed_from}"
            return f"{event.parameters:,} parameters, {long}{since}"
        case MemoryChecked():
            return f"largest batch fits: peak memory {event.peak / 2**20:.0f} MB"
        case Skipped():
            return f"step {event.step}: loss {event.loss:g}, gradient norm {event.gradient_norm:g}: skipped"
        case Validated():
            scores = "  ".join(f"{name} {score:.4g}" for name, score in event.scores.items())
            return f"step {event.step}: validation  {scores}{'  (best)' if event.best else ''}"
        case Stopped():
            return f"step {event.step}: {ENDINGS[event.reason]}"
        case Finished():
            return (
                f"{event.steps} steps, {event.epochs:.1f} epochs in {duration(event.seconds)}; weights: {event.weights}"
            )
        case Stepped() | Saved():
            return None


class Speed:
    """Units per second over the steps since the last question; single steps differ too much to read."""

    def __init__(self) -> None:
        self.units, self.seconds = 0, 0.0

    def add(self, event: Stepped) -> None:
        self.units += event.units
        self.seconds += event.units / max(event.units_per_second, 1e-9)

    def ask(self) -> float:
        speed = self.units / max(self.seconds, 1e-9)
        self.units, self.seconds = 0, 0.0
        return speed


def status(event: Stepped, speed: float) -> str:
    left = "" if event.seconds_left is None else f"  {duration(event.seconds_left)} left"
    return f"step {event.step}  epoch {event.epoch + 1}  loss {event.loss:.4f}  {speed:,.0f} tokens/s{left}"


class Lines:
    """For a log file or a pipe: what happens, and the state of the run every ten seconds."""

    def __init__(self, stream: Stream, clock: Callable[[], float]) -> None:
        self.stream, self.clock = stream, clock
        self.last, self.speed = clock(), Speed()

    def read(self, event: Event) -> None:
        line = sentence(event)
        if isinstance(event, Stepped):
            self.speed.add(event)
            if self.clock() - self.last >= QUIET:
                line = f"{event.progress:4.0%}  {status(event, self.speed.ask())}"
        if line is not None:
            self.last = self.clock()
            self.stream.write(line + "\n")
            self.stream.flush()

    def close(self) -> None:
        """Every line is out already."""


class Bar:
    """For a terminal: one bar that moves, and the lines of what happens above it."""

    def __init__(self, stream: Stream, clock: Callable[[], float]) -> None:
        columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%  {task.description}"))
        self.progress = Progress(
            *columns, console=Terminal(file=cast(IO[str], stream), highlight=False), refresh_per_second=4
        )
        self.task = self.progress.add_task("", total=1.0)
        self.clock, self.last, self.speed = clock, clock() - 1, Speed()

    def read(self, event: Event) -> None:
        if isinstance(event, Started):
            self.progress.start()
        line = sentence(event)
        if line is not None:
            self.progress.console.print(line, markup=False)
        if isinstance(event, Stepped):
            self.speed.add(event)
            if self.clock() - self.last >= 0.5:
                self.last = self.clock()
                self.progress.update(
                    self.task, completed=min(event.progress, 1.0), description=status(event, self.speed.ask())
                )

    def close(self) -> None:
        self.progress.stop()


class Console:
    """`lines` first, then the run as it goes."""

    def __init__(
        self,
        lines: Sequence[str] = (),
        stream: Stream | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lines = lines
        self.stream = sys.stderr if stream is None else stream
        self.view: Bar | Lines = (Bar if self.stream.isatty() else Lines)(self.stream, clock)

    def __enter__(self) -> Reader:
        for line in self.lines:
            self.stream.write(line + "\n")
        self.stream.flush()
        return self.view

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.view.close()
