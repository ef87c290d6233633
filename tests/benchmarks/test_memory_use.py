"""The measurement of memory: it sees what a process and its children hold, and a stream's lines come out complete."""

import json
import subprocess
import sys

import pytest

from benchmarks import memory
from benchmarks.memory import MB, Sample, around, at_work, peak, watch
from benchmarks.text import WORDS, lexicon, write_lines

HOLD = "import time; held = bytearray(b'x') * {megabytes} * 2**20; time.sleep(0.5)"


def test_a_process_that_holds_more_is_seen_to_hold_more():
    small, large = (peak(watch([sys.executable, "-c", HOLD.format(megabytes=m)])) for m in (1, 61))
    assert large - small == pytest.approx(60 * MB, rel=0.1)


def test_what_children_hold_is_counted():
    child = HOLD.format(megabytes=40)
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    samples = watch([sys.executable, "-c", parent])
    assert max(sample.resident for sample in samples) > 40 * MB


def test_a_command_that_fails_is_no_measurement():
    with pytest.raises(subprocess.CalledProcessError):
        watch([sys.executable, "-c", "raise SystemExit(3)"])


def test_shares_of_a_run_are_shares_of_its_time():
    samples = [Sample(float(i), 1, i * MB, 0) for i in range(101)]
    assert around(samples, 0.1) == 7.5 * MB  # of 5 … 10
    assert around(samples, 1.0) == 97.5 * MB  # of 95 … 100


def test_work_begins_when_all_processes_are_there():
    samples = [Sample(1.0, 1, 5, 5), Sample(2.5, 3, 6, 6), Sample(4.0, 2, 7, 7)]  # one ended before the others
    assert at_work(samples) == [Sample(0.0, 3, 6, 6), Sample(1.5, 2, 7, 7)]


def test_a_peak_between_two_looks_counts():
    assert peak([Sample(0.0, 1, 5, 9), Sample(1.0, 1, 7, 8)]) == 9


def test_no_two_made_up_words_are_alike():
    assert len(set(lexicon(WORDS))) == WORDS


def test_made_up_text_has_the_lines_and_words_that_were_asked_for(tmp_path):
    write_lines(tmp_path / "a", 10_007, words=(2, 4), seed=1)  # more than one block
    lengths = [len(line.split()) for line in (tmp_path / "a").read_text(encoding="utf-8").splitlines()]
    assert len(lengths) == 10_007
    assert set(lengths) == {2, 3, 4}


def test_made_up_text_is_a_function_of_its_seed(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_lines(tmp_path / name, 20, words=(2, 4), seed=seed)
    a, b, c = ((tmp_path / name).read_text(encoding="utf-8") for name in "abc")
    assert a == b != c


@pytest.mark.slow
def test_the_quick_measurement_writes_what_training_and_translating_held(tmp_path):
    memory.main(["--quick", "--out", str(tmp_path)])
    figures = json.loads((tmp_path / "bench-memory-quick.json").read_text(encoding="utf-8"))["figures"]
    row = "memory, translating 20,000 lines"
    assert figures[f"{row}: lines out"] == 20_000
    assert figures[f"{row}: peak MB"] >= figures[f"{row}: MB at 100 %"] > 0
    assert figures["memory, training: peak MB"] > 0


def test_lines_that_get_lost_are_an_error(monkeypatch):
    monkeypatch.setattr(memory, "watch", lambda _command: [Sample(1.0, 1, 1, 1)])
    monkeypatch.setattr(memory, "count_lines", lambda _path: 6)
    with pytest.raises(RuntimeError, match="7 lines in, 6 lines out"):
        memory.measure_translation(memory.Scope(memory.TINY, pairs=1, steps=1, lines=7))
