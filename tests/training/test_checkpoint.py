import errno
import json

import pytest
import torch
from safetensors import SafetensorError

from regard.errors import ModelFormatError, RegardError, TrainingError
from regard.training import checkpoint, tensors
from regard.training.checkpoint import Place


def content(value=1.0):
    return {"model": {"w": torch.full((2, 3), value)}, "optimiser": {}}


def put(folder, step, scheduled=True):
    path = checkpoint.path_of(folder, step)
    checkpoint.save(path, content(float(step)), Place(step=step, scheduled=scheduled))
    return path


def test_what_was_saved_is_read_back_to_the_bit(tmp_path):
    place = Place(step=7, epoch=1, position=3, elapsed=0.1 + 0.2, best=1 / 3, scores={"loss": 1e-17}, worse=2)
    noise = {"model": {"w": torch.randn(3)}, "ema": {"w": torch.randn(3, dtype=torch.float64)}}
    checkpoint.save(tmp_path / "c", noise, place)
    found, again = checkpoint.read(tmp_path / "c")
    assert again == place
    assert all(torch.equal(found[part]["w"], noise[part]["w"]) for part in noise)


def test_a_checkpoint_holds_no_code(tmp_path):
    names = {p.name for p in put(tmp_path, 1234).iterdir()}
    assert names == {"model.safetensors", "optimiser.safetensors", "state.json", "manifest.json"}
    assert (tmp_path / "step-00001234").is_dir()


def test_the_latest_is_the_highest_step_not_the_last_written(tmp_path):
    for step in (5, 100_000_000, 20):
        put(tmp_path, step)
    assert checkpoint.latest(tmp_path) == checkpoint.path_of(tmp_path, 100_000_000)


def test_there_is_no_latest_where_there_is_nothing(tmp_path):
    (tmp_path / "step-12").mkdir()
    assert checkpoint.latest(tmp_path) is None
    assert checkpoint.latest(tmp_path / "none") is None


@pytest.mark.parametrize("file", ["model.safetensors", "state.json", "manifest.json"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, file):
    whole, damaged = put(tmp_path, 1), put(tmp_path, 2)
    (damaged / file).write_bytes(b"{")
    assert checkpoint.latest(tmp_path) == whole


def test_when_every_checkpoint_is_damaged_that_is_said(tmp_path):
    for step in (1, 2):
        (put(tmp_path, step) / "model.safetensors").unlink()
    with pytest.raises(ModelFormatError, match=r"step-00000002/model\.safetensors: missing"):
        checkpoint.latest(tmp_path)


def test_what_a_killed_save_left_is_removed(tmp_path):
    put(tmp_path, 1)
    put(tmp_path, 2).rename(tmp_path / ".step-00000002.tmp")
    put(tmp_path, 3).rename(tmp_path / ".best.old")
    assert checkpoint.latest(tmp_path) == checkpoint.path_of(tmp_path, 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "step-00000001"]


def test_pruning_keeps_the_current_and_the_newest_scheduled(tmp_path):
    for step in (1, 2, 3, 4, 5, 9):
        put(tmp_path, step, scheduled=step not in (3, 5))
    (tmp_path / "best").mkdir()
    checkpoint.prune(tmp_path, checkpoint.path_of(tmp_path, 5), keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "step-00000002", "step-00000004", "step-00000005"]


def test_a_damaged_state_is_not_scheduled(tmp_path):
    whole, damaged = put(tmp_path, 1), put(tmp_path, 2)
    (damaged / "state.json").write_text("[]")
    assert checkpoint.scheduled(tmp_path) == [whole]


@pytest.mark.parametrize("part", ["model", "optimiser", "ema"])
def test_weights_that_are_not_finite_are_never_saved(tmp_path, part):
    bad = {**content(), part: {"w": torch.tensor([1.0, torch.nan])}}
    with pytest.raises(TrainingError, match=f"step 3: the {part} tensors are not finite"):
        checkpoint.save(tmp_path / "c", bad, Place(step=3))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [SafetensorError("No space left"), OSError(errno.ENOSPC, "No space left")])
def test_a_full_disk_keeps_the_checkpoint_of_before(tmp_path, monkeypatch, error):
    checkpoint.save(tmp_path / "best", content(1.0), Place(step=1))

    def full(*_):
        raise error

    monkeypatch.setattr(tensors, "save_file", full)
    with pytest.raises(RegardError, match=r"best: not written .*No space left"):
        checkpoint.save(tmp_path / "best", content(2.0), Place(step=2))
    assert [p.name for p in tmp_path.iterdir()] == ["best"]
    assert checkpoint.read(tmp_path / "best")[1].step == 1


def test_the_state_is_plain_json(tmp_path):
    assert json.loads((put(tmp_path, 4) / "state.json").read_text())["step"] == 4
