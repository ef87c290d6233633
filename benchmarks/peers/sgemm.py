"""The best that torch gets out of this machine in float32: `python -m benchmarks.peers.sgemm PLAN`."""

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.turns import Answers, serve

SIZES = [(4096, 256, 1024), (4096, 1024, 256), (1024, 1024, 1024), (2048, 2048, 2048), (3072, 3072, 3072)]


def rate(m: int, k: int, n: int, enough: float) -> float:
    """FLOP/s of (m × k) · (k × n) into memory that is there already, the median over `enough` seconds."""
    a, b, out = torch.rand(m, k), torch.rand(k, n), torch.zeros(m, n)
    seconds: list[float] = []
    while not seconds or sum(seconds) < enough:
        began = time.perf_counter()
        torch.mm(a, b, out=out)
        seconds.append(time.perf_counter() - began)
    return 2 * m * k * n / statistics.median(seconds)


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])

    def work(_asked: Any) -> dict[str, Any]:
        return {"rates": {f"{m}×{k}×{n}": rate(m, k, n, plan["sgemm_seconds"]) for m, k, n in SIZES}}

    serve(Answers(), work)


if __name__ == "__main__":
    main()
