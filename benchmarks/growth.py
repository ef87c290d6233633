"""How cost grows with length, for full, sliding-window and linear self-attention, to 8,192 tokens.

python -m benchmarks.growth     → results/bench-growth.json, .md and results/growth.svg
"""

import argparse
import math
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.lengths import (
    DECODING,
    FULL,
    PREFILL,
    QUICK,
    STEPS,
    TRAINING,
    Decoding,
    Scope,
    extra_memory,
    model_of,
    prefill,
    state_memory,
    train,
)
from benchmarks.plot import Panel, sheet
from benchmarks.results import RESULTS, Result, write
from regard.explaining.chart import Point, Series
from regard.files import write_atomically

KERNELS = ("full", "window", "linear")
LAST = 4  # points from which an exponent is fitted: three doublings
NAMES = ("full", "sliding window", "linear")


# ---------------------------------------------------------------- time
def seconds(actions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each action; they take turns, so that a slow moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(repeats + 1):
        for name, action in actions.items():
            began = time.perf_counter()
            action()
            if turn:  # the first turn warms up
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def times(scope: Scope) -> dict[str, float]:
    """Microseconds per token, by work, kernel and length."""
    models = {kernel: model_of(kernel, scope) for kernel in KERNELS}
    passes: dict[str, Callable[[], object]] = {}
    steps: dict[str, Callable[[], object]] = {}
    for kernel, model in models.items():
        for n in scope.lengths:
            passes[name(TRAINING, "µs", kernel, n)] = partial(train, model, n, scope)
            passes[name(PREFILL, "µs", kernel, n)] = partial(prefill, model, n, scope.tokens // n)
    found = {key: 1e6 * value / scope.tokens for key, value in seconds(passes, scope.repeats).items()}
    for kernel, model in models.items():
        for n in scope.lengths:
            steps[name(DECODING, "µs", kernel, n)] = Decoding(model, n, scope.rows)
    decoded = STEPS * scope.rows
    return found | {key: 1e6 * value / decoded for key, value in seconds(steps, scope.repeats).items()}


def name(work: str, unit: str, kernel: str, column: object) -> str:
    return f"growth, {work}, {unit}, {kernel}: {column}"


# ---------------------------------------------------------------- memory
def peaks(asked: Sequence[tuple[str, str, int, Scope]]) -> list[int]:
    """`extra_memory` of each, in a fresh process: a fork of one that has imported torch and computed nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.lengths"])
    with context.Pool(1, maxtasksperchild=1) as pool:
        return pool.starmap(extra_memory, asked, chunksize=1)


def memories(scope: Scope) -> dict[str, float]:
    """Kilobytes per token of the passes, and of one row's state, by kernel and length."""
    asked = [(work, kernel, n, scope) for work in (TRAINING, PREFILL) for kernel in KERNELS for n in scope.lengths]
    found = {
        name(work, "kB", kernel, n): peak / 1e3 / scope.tokens
        for (work, kernel, n, _), peak in zip(asked, peaks(asked), strict=True)
    }
    for kernel in KERNELS:
        for n in scope.lengths:
            found[name(DECODING, "kB", kernel, n)] = state_memory(kernel, n, scope) / 1e3
    return found


# ---------------------------------------------------------------- what it says
def exponent(lengths: Sequence[float], costs: Sequence[float]) -> float:
    """The b of cost ∝ length^b: least squares on both logarithms."""
    return statistics.linear_regression([math.log(n) for n in lengths], [math.log(c) for c in costs]).slope


def with_exponents(found: Mapping[str, float], scope: Scope) -> dict[str, float]:
    """The figures, and for each row of them the exponent over its longest lengths."""
    rows = list(dict.fromkeys(key.rpartition(": ")[0] for key in found))
    last = scope.lengths[-LAST:]
    return dict(found) | {f"{row}: exponent": exponent(last, [found[f"{row}: {n}"] for n in last]) for row in rows}


def measure(scope: Scope = FULL) -> dict[str, float]:
    """Cost per token by length; the exponents say that it grows as length^exponent."""
    return with_exponents(times(scope) | memories(scope), scope)


def picture(figures: Mapping[str, float], scope: Scope) -> str:
    """The figures as one sheet of charts, time above and memory below."""

    def panel(work: str, unit: str, title: str, shown: str) -> Panel:
        lines = []
        for kernel, words in zip(KERNELS, NAMES, strict=True):
            points = [Point(float(n), figures[name(work, unit, kernel, n)], "") for n in scope.lengths]
            lines.append(Series(words, tuple(points)))
        return Panel(title, shown, "cached tokens" if work == DECODING else "sequence length", tuple(lines))

    panels = [
        panel(TRAINING, "µs", "Encoder, forward + backward", "µs per token"),
        panel(PREFILL, "µs", "Decoder, prefill", "µs per token"),
        panel(DECODING, "µs", "Decoder, one more token", "µs per token"),
        panel(TRAINING, "kB", "Encoder, forward + backward", "peak kB per token"),
        panel(PREFILL, "kB", "Decoder, prefill", "peak kB per token"),
        panel(DECODING, "kB", "Decoder, its state", "kB per row"),
    ]
    return sheet("Cost by length", panels, columns=3)


def notes(scope: Scope) -> str:
    return (
        f"Two encoder and two decoder layers, width {scope.width}, window {scope.window}; {scope.tokens:,} tokens a "
        "pass at every length, so that only attention can make a token dearer. Times: medians of "
        f"{scope.repeats} passes in turns; for one decoded token, of {STEPS} steps with {scope.rows} rows at once. "
        "Memory: peak beyond what was resident before the pass, each in a fresh process; for decoding the bytes of "
        "one row's state. Cost per token grows as length^exponent, fitted over the last three doublings: 1 is a cost "
        "that doubles with the length, 0 is flat."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short lengths, in seconds; the figures mean nothing")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen: Any = parser.parse_args(arguments)
    scope, suffix = (QUICK, "-quick") if chosen.quick else (FULL, "")
    began = time.perf_counter()
    figures = measure(scope)
    command = "python -m benchmarks.growth" + (" --quick" if chosen.quick else "")
    minutes = (time.perf_counter() - began) / 60
    write(f"bench-growth{suffix}", Result(command, minutes, figures, notes(scope)), chosen.out)
    write_atomically(chosen.out / f"growth{suffix}.svg", picture(figures, scope))
    for row, value in figures.items():
        if row.endswith(": exponent"):
            sys.stdout.write(f"{value:6.2f}  {row}\n")


if __name__ == "__main__":
    main()
