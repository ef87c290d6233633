"""How far a long piece of work has come, for whoever waits."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
EVERY = 10.0  # seconds between two lines


def say(line: str) -> None:
    """One line on stderr, at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def counted(
    items: Iterable[T], total: int | None, *, done: int = 0, clock: Callable[[], float] = time.monotonic
) -> Iterator[T]:
    """The same items, and every ten seconds a line about their number; `done` of `total` came before."""
    began = told = clock()
    for count, item in enumerate(items, start=1):
        yield item
        now = clock()
        if now - told >= EVERY:
            told = now
            say(standing(done + count, total, count / (now - began)))


def timed(items: Iterable[T], total: int, name: str, *, clock: Callable[[], float] = time.monotonic) -> Iterator[T]:
    """The same items, and every ten seconds a line: "loss without each head: 3 of 12, 90 s left"."""
    began = told = clock()
    for count, item in enumerate(items, start=1):
        yield item
        now = clock()
        if now - told >= EVERY and count < total:
            told = now
            say(f"{name}: {count:,} of {total:,}, {(now - began) / count * (total - count):.0f} s left")


def standing(lines: int, total: int | None, speed: float) -> str:
    """ "1,024 of 29,000 lines, 310 a second, 90 s left"; what is not known is left out."""
    of, left = ("", "") if total is None else (f" of {total:,}", f", {(total - lines) / speed:.0f} s left")
    return f"{lines:,}{of} lines, {speed:.0f} a second{left}"
