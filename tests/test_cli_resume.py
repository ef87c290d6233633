"""A run that is stopped, in whatever way, and resumed ends with the bytes of one that was not."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tiny_runs import options

from regard.training.events import Finished, Started, Stepped
from regard.training.logs import read_log

STEPS = 40
HARD = (  # everything random is on, and a step takes two batches
    "text.kind=bpe",
    "text.dropout=0.1",
    "training.accumulate=2",
    "training.save_every=5",
    "training.validations=3",
    "model.attention_dropout=0.1",
    "training.optimiser=muon",
    "training.ema=0.9",
)


@pytest.fixture(scope="module")
def arguments(corpus):
    files = ["--source", corpus / "train.source", "--target", corpus / "train.target", "--steps", STEPS]
    return ["train", *files, "--quiet", *options(*HARD)]


@pytest.fixture(scope="module")
def whole(arguments, tmp_path_factory):
    """The same run without a pause, in a process of its own: nothing that pytest brings can make a difference."""
    out = tmp_path_factory.mktemp("whole") / "m"
    assert started([*arguments, "--out", out]).wait() == 0
    return (out / "model.safetensors").read_bytes()


def started(arguments):
    return subprocess.Popen([sys.executable, "-m", "regard", *map(str, arguments)], env={**os.environ})


def wait_for_step(process, folder, step):
    deadline = time.monotonic() + 250
    while not any(int(path.name[5:]) >= step for path in (folder / "checkpoints").glob("step-*")):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"no checkpoint of step {step} in {folder}")
        time.sleep(0.01)


def check_story(folder):
    events = read_log(folder / "training.jsonl")
    steps = [event.step for event in events if isinstance(event, Stepped)]
    assert steps == [1, *range(10, STEPS + 1, 10)]
    assert sum(isinstance(event, Finished) for event in events) == 1
    return [event.resumed_from for event in events if isinstance(event, Started)]


def test_a_killed_run_ends_with_the_bytes_of_one_that_was_not(regard, arguments, whole, tmp_path):
    out, rng = tmp_path / "m", random.Random()
    process = started([*arguments, "--out", out])
    wait_for_step(process, out, rng.choice([5, 10, 15]))
    time.sleep(rng.uniform(0, 0.05))  # somewhere in a step, an epoch or a save
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    regard("translate", out).refused("not finished", "--resume")
    ended = regard("train", "--resume", out, "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (out / "model.safetensors").read_bytes() == whole
    assert len(check_story(out)) == 2
    assert regard("translate", out, stdin=b"ab\n").code == 0


def test_an_interrupted_run_saves_says_so_and_goes_on(regard, arguments, whole, tmp_path):
    out = tmp_path / "m"
    process = started([*arguments, "--out", out])
    wait_for_step(process, out, 5)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    saved = max(int(path.name[5:]) for path in (out / "checkpoints").glob("step-*"))
    assert regard("train", "--resume", out, "--quiet").code == 0
    assert (out / "model.safetensors").read_bytes() == whole
    assert check_story(out) == [None, saved]


def test_a_run_killed_while_it_writes_the_model_goes_on_to_the_same_model(regard, train, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    assert train(tmp_path / "whole", "--steps", 4).code == 0
    for name, moment in (("weights", "regard.run.write_weights"), ("manifest", "regard.run.write_manifest")):
        with monkeypatch.context() as patch:
            patch.setattr(moment, fail)
            assert train(tmp_path / name, "--steps", 4).code == 130
        regard("translate", tmp_path / name).refused("not finished")
        assert regard("train", "--resume", tmp_path / name, "--quiet").code == 0
        assert (tmp_path / name / "model.safetensors").read_bytes() == (
            tmp_path / "whole" / "model.safetensors"
        ).read_bytes()
        assert regard("translate", tmp_path / name).code == 0


def test_a_run_killed_before_its_first_checkpoint_begins_anew(regard, train, tmp_path, monkeypatch):
    def fail(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("regard.run.run_loop", fail)
        assert train(tmp_path / "m", "--steps", 4).code == 130
    assert train(tmp_path / "whole", "--steps", 4).code == 0
    assert regard("train", "--resume", tmp_path / "m", "--quiet").code == 0
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()
