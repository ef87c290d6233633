"""What the commands hold in memory: a training run, and the translation of a file of a million lines.

python -m benchmarks.memory     → results/bench-memory.json and .md
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.results import RESULTS, Result, write
from benchmarks.text import write_lines

MB = 2**20
EVERY = 0.1  # seconds between two looks at a process


@dataclass(frozen=True)
class Scope:
    """A training run of `shape` on `pairs` made-up pairs, and a file of `lines` for a tiny model."""

    shape: tuple[str, ...]
    pairs: int
    steps: int
    lines: int


FULL = Scope(
    ("model.width=256", "model.feedforward=1024", "model.encoder_layers=4", "model.decoder_layers=4",
     "text.kind=bpe", "text.size=8000", "data.batch_tokens=4096", "decoding.cap=32"),
    pairs=29_000, steps=12, lines=1_000_000,
)  # fmt: skip
TINY = (
    "model.width=32", "model.heads=2", "model.feedforward=64", "model.encoder_layers=1", "model.decoder_layers=1",
    "text.kind=bpe", "text.size=500", "data.batch_tokens=1024", "decoding.cap=4",
)  # fmt: skip
QUICK = Scope(TINY, pairs=500, steps=5, lines=20_000)
TINY_STEPS = 20
CAPTION, SHORT = (8, 20), (2, 6)  # words of a line: as in image captions; little work, so that a million takes minutes


# ---------------------------------------------------------------- looking at processes
@dataclass(frozen=True)
class Sample:
    """Bytes that processes held at one moment, a command's and its descendants'; `highest`: one of them, ever."""

    seconds: float
    processes: int
    resident: int
    highest: int


def descendants(pid: int) -> Iterator[int]:
    """The process and all that it started, as far as they are still there."""
    yield pid
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = tasks.read_text().split()
        except OSError:  # ended meanwhile
            continue
        for child in children:
            yield from descendants(int(child))


def status(pid: int) -> dict[str, int]:
    """The sizes in /proc/PID/status, in bytes; nothing of a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith(" kB")}


def watch(command: Sequence[str | Path]) -> list[Sample]:
    """Runs the command to its end and looks at its memory all the while."""
    began, found = time.monotonic(), []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            sizes = [status(pid) for pid in descendants(process.pid)]
            resident = sum(size.get("VmRSS", 0) for size in sizes)
            if resident:
                highest = max(size.get("VmHWM", 0) for size in sizes)
                found.append(Sample(time.monotonic() - began, len(sizes), resident, highest))
            time.sleep(EVERY)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(map(str, command)))
    return found


def peak(samples: Sequence[Sample]) -> int:
    """The most that was held at once, between two looks too where one process holds nearly all."""
    return max(max(sample.resident, sample.highest) for sample in samples)


def at_work(samples: Sequence[Sample]) -> list[Sample]:
    """Those since all processes are there, counted from then on: before, libraries and the model are read."""
    most = max(sample.processes for sample in samples)
    first = next(place for place, sample in enumerate(samples) if sample.processes == most)
    return [replace(sample, seconds=sample.seconds - samples[first].seconds) for sample in samples[first:]]


def around(samples: Sequence[Sample], share: float) -> float:
    """The median of what was held in the twentieth of the time that ends at this share of it."""
    end = share * samples[-1].seconds
    begin = end - samples[-1].seconds / 20
    return statistics.median([s.resident for s in samples if begin <= s.seconds <= end] or [samples[0].resident])


# ---------------------------------------------------------------- the two commands
def regard(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "regard", *map(str, words)]


def training(folder: Path, settings: Sequence[str], pairs: int, steps: int) -> list[str]:
    """The command that trains on made-up captions, written to the folder; its model is in folder/model."""
    for side, seed in (("source", 1), ("target", 2)):
        write_lines(folder / side, pairs, words=CAPTION, seed=seed)
    files = ("--source", folder / "source", "--target", folder / "target", "--out", folder / "model")
    # The model learns nothing in so few steps: scoring it would take longer than the steps.
    chosen = (*settings, "data.valid_size=20", "training.validations=0")
    return regard("train", *files, "--steps", str(steps), "--quiet", *(f"--set={setting}" for setting in chosen))


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def measure_training(scope: Scope) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        samples = watch(training(Path(temporary), scope.shape, scope.pairs, scope.steps))
    row = "memory, training"
    return {f"{row}: peak MB": peak(samples) / MB, f"{row}: seconds": samples[-1].seconds}


def measure_translation(scope: Scope) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        watch(training(folder, TINY, 500, TINY_STEPS))
        source, output = folder / "input", folder / "output"
        write_lines(source, scope.lines, words=SHORT, seed=3)
        samples = watch(regard("translate", folder / "model", "--input", source, "--output", output, "--beam", "1"))
        out = count_lines(output)
    if out != scope.lines:
        raise RuntimeError(f"{scope.lines:,} lines in, {out:,} lines out; expected as many")
    row = f"memory, translating {scope.lines:,} lines"
    working = at_work(samples)
    return {
        f"{row}: peak MB": peak(samples) / MB,
        f"{row}: MB at 10 %": around(working, 0.1) / MB,
        f"{row}: MB at 50 %": around(working, 0.5) / MB,
        f"{row}: MB at 100 %": around(working, 1.0) / MB,
        f"{row}: seconds": samples[-1].seconds,
        f"{row}: lines out": float(out),
    }


def measure(scope: Scope = FULL) -> dict[str, float]:
    """Peaks of both commands, and what translation holds as it goes on."""
    return measure_training(scope) | measure_translation(scope)


def notes(scope: Scope) -> str:
    return (
        f"The real commands as processes of their own, their resident memory read from /proc every {EVERY} s, worker "
        "processes included (pages that they share count in each). Made-up words. Training: "
        f"{scope.pairs:,} pairs of caption length, {', '.join(scope.shape)}, {scope.steps} steps; the largest batch is "
        f"the first. Translation: a tiny model, beam 1, {scope.lines:,} lines of {SHORT[0]} to {SHORT[1]} words from a "
        "file to a file. MB at a share of the time since all processes run: a streamed file is flat from 10 % to 100 %."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny model and 20,000 lines")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen: Any = parser.parse_args(arguments)
    scope, suffix = (QUICK, "-quick") if chosen.quick else (FULL, "")
    began = time.perf_counter()
    figures = measure(scope)
    command = "python -m benchmarks.memory" + (" --quick" if chosen.quick else "")
    result = Result(command, (time.perf_counter() - began) / 60, figures, notes(scope))
    for key, value in write(f"bench-memory{suffix}", result, chosen.out)["figures"].items():
        sys.stdout.write(f"{value:12,.1f}  {key}\n")


if __name__ == "__main__":
    main()
