"""Readers of events that keep them: a file of JSON lines, and TensorBoard."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TextIO, runtime_checkable

from regard.errors import DataError, RegardError
from regard.files import write_atomically
from regard.training.events import Event, Started, Stepped, Validated, from_json, to_json


@runtime_checkable
class Reader(Protocol):
    def read(self, event: Event) -> None: ...


class JsonLog:
    """One event per line. A resumed run first cuts the file back to its step, so the file tells one story.

    Of the steps, only the first and each `every`-th are written.
    """

    def __init__(self, path: Path, every: int = 10) -> None:
        self.path, self.every = path, every
        self.file: TextIO | None = None

    def __enter__(self) -> "JsonLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.file:
            self.file.close()
            self.file = None

    def read(self, event: Event) -> None:
        if isinstance(event, Started):
            self._begin(event.resumed_from)
        if isinstance(event, Stepped) and event.step != 1 and event.step % self.every:
            return
        assert self.file, "a run says that it started before it says anything else"
        self.file.write(to_json(event) + "\n")
        self.file.flush()

    def _begin(self, step: int | None) -> None:
        kept = [] if step is None else list(told_until(self.path, step))
        write_atomically(self.path, "".join(line + "\n" for line in kept))
        self.file = self.path.open("a", encoding="utf-8")


def told_until(path: Path, step: int) -> Iterator[str]:
    """The lines of a log before its first event after `step`; a line that a crash tore ends it too."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError, AttributeError):
            if json.loads(line).get("step", 0) <= step:
                yield line
                continue
        return


def read_log(path: Path) -> list[Event]:
    """The events of a file that `JsonLog` wrote."""
    try:
        return [from_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; expected the log of a training run") from error


class TensorBoardLog:
    """The same events as curves, for those who watch them in TensorBoard."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise RegardError("tensorboard: not installed; run pip install 'regard[tensorboard]'") from error
        self.folder, self.make = folder, SummaryWriter
        self.writer: Any = None

    def __enter__(self) -> "TensorBoardLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.writer:
            self.writer.close()

    def read(self, event: Event) -> None:
        match event:
            case Started(resumed_from=step):
                purge = None if step is None else step + 1  # hides what a killed run wrote after its last checkpoint
                self.writer = self.make(str(self.folder), purge_step=purge)
            case Stepped():
                for name in ("loss", "learning_rate", "gradient_norm", "units_per_second"):
                    self.writer.add_scalar(f"training/{name}", getattr(event, name), event.step)
            case Validated():
                for name, score in event.scores.items():
                    self.writer.add_scalar(f"validation/{name}", score, event.step)
            case _:
                pass
