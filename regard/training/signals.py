"""Ctrl-C and SIGTERM: the first asks the run to save and stop, the second leaves at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Gives the question "was a stop asked for?"; the handlers of before come back at the end.

    Python delivers signals to the main thread only: elsewhere nothing is installed and the answer stays no.
    """
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(INTERRUPTED)  # a save in progress stays behind as a temporary folder, never as half a checkpoint
        asked = True

    def was_asked() -> bool:
        return asked

    if threading.current_thread() is not threading.main_thread():
        yield was_asked
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield was_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
