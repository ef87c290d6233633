"""Start-up is that of whole commands: one that fails has no time."""

import json
import subprocess
import sys

import pytest

from benchmarks.startup import HELP, TRANSLATE, main, seconds


def test_a_command_reads_its_line_and_ends():
    assert seconds([sys.executable, "-c", "assert input() == 'a line'"], "a line\n") > 0


def test_a_command_that_fails_has_no_time():
    with pytest.raises(subprocess.CalledProcessError):
        seconds([sys.executable, "-c", "raise SystemExit(1)"])


def test_both_commands_are_timed_with_a_model_that_is_given(tmp_path, model):
    main(["--quick", "--model", str(model), "--out", str(tmp_path)])
    figures = json.loads((tmp_path / "bench-startup-quick.json").read_text(encoding="utf-8"))["figures"]
    assert set(figures) == {HELP, TRANSLATE}
    assert all(value > 0 for value in figures.values())
