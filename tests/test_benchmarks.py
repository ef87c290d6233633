"""The benchmark itself: that it runs, and that what it writes is whole. Its figures are never asserted."""

import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_quick_benchmark_writes_a_whole_result_and_its_page(tmp_path):
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--out", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert ended.returncode == 0, ended.stderr
    result = json.loads((tmp_path / "bench-quick.json").read_text(encoding="utf-8"))
    assert list(result) == ["command", "commit", "date", "machine", "minutes", "figures", "notes"]
    figures = result["figures"]
    assert all(math.isfinite(value) and value > 0 for value in figures.values())
    speed = "training, target tokens/s"
    assert {f"{speed}: Regard", f"{speed}: torch.nn.Transformer", f"{speed}: ratio"} <= set(figures)
    # The page is made from the file: each row of the table is there.
    page = (tmp_path / "bench-quick.md").read_text(encoding="utf-8")
    assert all(f"| {name.rpartition(': ')[0]} |" in page for name in figures)
    assert result["notes"] in page
