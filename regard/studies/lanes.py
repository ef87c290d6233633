"""Rows of a study side by side: each in a process of its own, with its share of the cores.

A process gets its row as JSON and answers with a line of JSON if it must refuse; what it found is in the row's folder.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from threading import Thread

from regard.errors import RegardError, TrainingError
from regard.recipe.folder import LOG
from regard.studies.rows import ROWS, Plan, Result, Row, Tell, Texts, finish_row, finished, read_result
from regard.training.events import Stepped, from_json
from regard.training.logs import told_until
from regard.training.signals import INTERRUPTED, stop_on_signal
from regard.workers import ERRORS, refusal

# The child looks for modules exactly where its parent does: not in the folder that happens to be current.
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from regard.studies.lanes import main; main()"
REFUSED = 1  # as an exit code
GLANCE, NEWS = 0.2, 60.0  # seconds between two looks at the processes, and between two lines about their rows

Process = subprocess.Popen[str]


def side_by_side(rows: Sequence[Row], plan: Plan, out: Path, at_once: int, tell: Tell) -> list[Result] | None:
    """All rows finished, so many at a time; none when a signal interrupted them: each has saved where it was.

    If one fails, the others save and stop, and its error is raised.
    """
    waiting, running = deque(row for row in rows if not finished(row, out)), dict[Process, Row]()
    errors, stopping, told = list[RegardError](), False, time.monotonic()
    with stop_on_signal() as stop:
        while running or (waiting and not stopping):
            while waiting and len(running) < at_once and not stopping:
                row = waiting.popleft()
                tell(f"{row.name}: {plan.length}, {len(waiting)} more to come")
                running[begin(row, plan, out)] = row
            time.sleep(GLANCE)
            for process in [one for one in running if one.poll() is not None]:
                errors += ended(process, running.pop(process), out, tell)
            if (stop() or errors) and not stopping:
                stopping = True
                for process in running:
                    process.send_signal(signal.SIGINT)
            if running and time.monotonic() - told > NEWS:
                told = time.monotonic()
                tell(" · ".join(news(out / ROWS / row.name) for row in running.values()))
    if errors:
        raise errors[0]
    return None if stopping else [read_result(out / ROWS / row.name) for row in rows]


def begin(row: Row, plan: Plan, out: Path) -> Process:
    asked = json.dumps({"row": asdict(row), "plan": asdict(plan), "out": out}, default=str)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the child inherits it, until it can answer
    try:
        return subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(sys.path), asked],
            stdin=subprocess.PIPE,  # stays open as long as this process lives
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the parent, which hands it on
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def ended(process: Process, row: Row, out: Path, tell: Tell) -> list[RegardError]:
    """Tells what the row has become; what its process refused, if it did."""
    lines = process.communicate()[0].splitlines()
    if process.returncode == 0:
        tell(read_result(out / ROWS / row.name).sentence)
    if process.returncode in (0, INTERRUPTED):
        return []
    if process.returncode == REFUSED and lines:
        answer = json.loads(lines[-1])
        return [ERRORS[answer["error"]](answer["message"])]
    return [
        TrainingError(
            f"{row.name}: its process ended unexpectedly (exit code {process.returncode}), perhaps for want of "
            "memory; the same command goes on"
        )
    ]


def news(folder: Path) -> str:
    """How far a row is, by its log."""
    events = (from_json(line) for line in told_until(folder / LOG, sys.maxsize))  # its last line may be half written
    steps = [event for event in events if isinstance(event, Stepped)]
    if not steps:
        return f"{folder.name}: begins"
    return f"{folder.name}: {steps[-1].progress:.0%}, step {steps[-1].step}, loss {steps[-1].loss:.3f}"


def main() -> None:
    """What the process of a row runs. Without its parent it saves and stops."""
    Thread(target=outlived, daemon=True).start()
    asked = json.loads(sys.argv[2])
    row = Row(asked["row"]["name"], asked["row"]["preset"], tuple(asked["row"]["settings"]))
    plan = asked["plan"]
    texts = Texts(**{f.name: Path(plan["texts"][f.name]) for f in fields(Texts)})
    same = Plan(texts, plan["budget"], plan["steps"], plan["seed"], tuple(plan["settings"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        found = finish_row(row, same, Path(asked["out"]), quiet=True)
    except RegardError as error:
        sys.stdout.write(json.dumps(refusal(error)) + "\n")
        sys.exit(REFUSED)
    except KeyboardInterrupt:
        found = None
    sys.exit(INTERRUPTED if found is None else 0)


def outlived() -> None:
    """Waits for the parent's end, however it comes."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)
