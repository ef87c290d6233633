"""`regard study --at-once`: rows side by side are the rows that they are one by one, and stop and go on like them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_runs import STUDY

from regard.studies.lanes import begin
from regard.studies.rows import Plan, Row, Texts
from regard.training.signals import INTERRUPTED

ROWS = ("rnn", "transformer")
LONG = 100  # steps: time enough to interrupt them
PROCESSES = Path("/proc")


@pytest.fixture(scope="module")
def words(corpus):
    """Everything but --out, --steps and --at-once; validation and test text are one."""
    files = []
    for option, name in (("", "train"), ("valid-", "test"), ("test-", "test")):
        for side in ("source", "target"):
            files += [f"--{option}{side}", corpus / f"{name}.{side}"]
    return [*files, *(word for s in STUDY for word in ("--set", s)), *(word for r in ROWS for word in ("--rows", r))]


def weights(out):
    return [(out / "rows" / name / "model.safetensors").read_bytes() for name in ROWS]


def start(out, words, *length):
    command = [sys.executable, "-m", "regard", "study", "bottleneck", "--out", out, *words, *length, "--at-once", 2]
    process = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not all(any((out / "rows" / name / "checkpoints").glob("step-*")) for name in ROWS):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def test_rows_at_once_are_those_of_one_after_another(regard, words, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    assert regard("study", "bottleneck", "--out", one, *words, "--steps", 6).code == 0
    ended = regard("study", "bottleneck", "--out", two, *words, "--steps", 6, "--at-once", 2)
    assert ended.code == 0
    assert "rnn: 6 steps, 1 more to come\n" in ended.err
    assert "transformer: dev PPL " in ended.err
    assert weights(one) == weights(two)
    told = [json.loads((out / "study-bottleneck.json").read_text()) for out in (one, two)]
    assert told[1]["command"].endswith(" --at-once 2 --rows rnn --rows transformer")
    measured = ({k: v for k, v in t["figures"].items() if "minutes" not in k} for t in told)
    assert next(measured) == next(measured)


def test_cores_are_shared_among_rows_unless_one_says_otherwise(regard, words, monkeypatch, tmp_path):
    monkeypatch.setattr("regard.commands.study.cores", lambda: 6)
    free = [word for word in words if word != "training.threads=1"]
    free.pop(free.index("training.validations=1") - 2)  # the --set of what was left out
    out = tmp_path / "s"
    assert regard("study", "bottleneck", "--out", out, *free, "--steps", 1, "--at-once", 3).code == 0
    assert json.loads((out / "plan.json").read_text())["settings"][-1] == "training.threads=2"


def test_rows_at_once_that_are_interrupted_go_on(regard, words, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "s"
    assert regard("study", "bottleneck", "--out", whole, *words, "--steps", LONG).code == 0
    process = start(out, words, "--steps", LONG)
    process.send_signal(signal.SIGINT)
    assert "regard: interrupted" in process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert not (out / "study-bottleneck.json").exists()
    assert regard("study", "bottleneck", "--out", out, *words, "--steps", LONG, "--at-once", 2).code == 0
    assert weights(out) == weights(whole)


@pytest.mark.parametrize("ignored", [False, True])  # as by what a shell has started in the background
def test_an_interrupt_before_a_row_has_begun_is_not_lost(corpus, tmp_path, ignored):
    train, test = ((corpus / f"{name}.source", corpus / f"{name}.target") for name in ("train", "test"))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else signal.getsignal(signal.SIGINT)
    try:
        process = begin(Row("rnn", "rnn"), Plan(Texts(*train, *test, *test), "10m"), tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED


@pytest.mark.skipif(not PROCESSES.is_dir(), reason="needs /proc, to see which processes there are")
def test_rows_end_when_their_study_is_killed(words, tmp_path):
    out = tmp_path / "s"
    process = start(out, words, "--budget", "10m")
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while at_work(out):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def at_work(out):
    found = []
    for path in PROCESSES.glob("[0-9]*/cmdline"):
        try:
            found += [path] if str(out).encode() in path.read_bytes() else []
        except OSError:  # it has just ended
            continue
    return found


def test_a_row_that_is_refused_ends_the_study_with_its_line(regard, words, tmp_path):
    asked = ("--set", "model.dropout=2", "--steps", 1, "--at-once", 2, "--quiet")
    regard("study", "bottleneck", "--out", tmp_path / "s", *words, *asked).refused("model.dropout")
