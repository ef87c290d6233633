"""How long a fresh process takes: `regard --help`, and `regard translate` with one line.

python -m benchmarks.startup [--model DIR]     → results/bench-startup.json and .md
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.memory import FULL as TRAINED
from benchmarks.memory import regard, training
from benchmarks.results import RESULTS, Result, write

REPEATS = 5
LINE = "A man rides a bike.\n"
HELP, TRANSLATE = "start-up, seconds: regard --help", "start-up, seconds: regard translate, one line"


def seconds(command: Sequence[str], given: str = "") -> float:
    """From the start of the process to its end, with `given` on its stdin."""
    began = time.perf_counter()
    subprocess.run(command, input=given, check=True, stdout=subprocess.DEVNULL, text=True)
    return time.perf_counter() - began


def measure(model: Path | None = None, repeats: int = REPEATS) -> dict[str, float]:
    """Medians over fresh processes in turns; without a model, one of the usual size is made first."""
    if model is None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            subprocess.run(training(folder, TRAINED.shape, TRAINED.pairs, 1), check=True)
            return measure(folder / "model", repeats)
    # The first turn brings the files into memory.
    times = [(seconds(regard("--help")), seconds(regard("translate", model), LINE)) for _ in range(repeats + 1)]
    helped, translated = zip(*times[1:], strict=True)
    return {HELP: statistics.median(helped), TRANSLATE: statistics.median(translated)}


def notes(repeats: int) -> str:
    return (
        f"Medians of {repeats} fresh processes each, in turns, from start to exit; the files are in the page cache, "
        "nothing else is kept. The model is a Transformer of 4+4 layers, width 256, vocabulary 8,000."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one process each")
    parser.add_argument("--model", type=Path, help="a model directory; one is made when not given")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen: Any = parser.parse_args(arguments)
    repeats, suffix = (1, "-quick") if chosen.quick else (REPEATS, "")
    began = time.perf_counter()
    figures = measure(chosen.model, repeats)
    command = "python -m benchmarks.startup" + (" --quick" if chosen.quick else "")
    result = Result(command, (time.perf_counter() - began) / 60, figures, notes(repeats))
    for key, value in write(f"bench-startup{suffix}", result, chosen.out)["figures"].items():
        sys.stdout.write(f"{value:8.3f}  {key}\n")


if __name__ == "__main__":
    main()
