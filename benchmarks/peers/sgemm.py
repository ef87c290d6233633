"""The best that torch gets out of this machine in float32: `python -m benchmarks.peers.sgemm PLAN`."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.turns import Answers, serve

SIZES = [(4096, 256, 1024), (4096, 1024, 256), (1024, 1024, 1024), (2048, 2048, 2048), (3072, 3072, 3072)]


def rate(m: int, k: int, n: int, enough: float) -> float:
    """FLOP/s of (m × k) · (k × n) into memory that is there already: of all products of `enough` seconds.

    Not of a typical one: a core that others use at times is slower for training, too.
    """
    a, b, out = torch.rand(m, k), torch.rand(k, n), torch.zeros(m, n)
    torch.mm(a, b, out=out)
    count, began, seconds = 0, time.perf_counter(), 0.0
    while not count or seconds < enough:
        torch.mm(a, b, out=out)
        count, seconds = count + 1, time.perf_counter() - began
    return 2 * m * k * n * count / seconds


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])

    def work(_asked: Any) -> dict[str, Any]:
        return {"rates": {f"{m}×{k}×{n}": rate(m, k, n, plan["sgemm_seconds"]) for m, k, n in SIZES}}

    serve(Answers(), work)


if __name__ == "__main__":
    main()
