"""The benchmark itself: that it runs, and that what it writes is whole. Its figures are never asserted."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FIGURES = {
    "training": {
        "training, target tokens/s: Regard",
        "training, times as fast as: torch.nn.Transformer",
        "train_of_roof",
    },
    "decoding": {"decoding, beam 5, Regard 1×1: tokens/s", "one sentence, beam 1, Regard 1×1: p50, ms"},
}


@pytest.mark.slow
@pytest.mark.parametrize("section", FIGURES)
def test_the_quick_benchmark_writes_a_whole_result_and_its_page(tmp_path, monkeypatch, section):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--only", section, "--out", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert ended.returncode == 0, ended.stderr
    result = json.loads((tmp_path / "bench-quick.json").read_text(encoding="utf-8"))
    assert list(result) == ["command", "commit", "date", "machine", "minutes", "figures", "notes"]
    figures = result["figures"]
    assert all(math.isfinite(value) and value > 0 for value in figures.values())
    assert set(figures) >= FIGURES[section]
    # The page is made from the file: each row of a table is there.
    page = (tmp_path / "bench-quick.md").read_text(encoding="utf-8")
    assert all(f"| {name.rpartition(': ')[0] or name} |" in page for name in figures)
    assert result["notes"] in page
