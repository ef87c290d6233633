import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from regard.errors import ModelFormatError, RegardError
from regard.files import check_manifest, manifest, settle, write_atomically, write_folder, write_manifest


def fill_with(content):
    def fill(folder: Path) -> None:
        (folder / "deep").mkdir()
        (folder / "deep" / "b").write_text(content)
        (folder / "a").write_text(content)

    return fill


@pytest.fixture
def order(monkeypatch):
    """What is forced to disk and renamed, in order, by name."""
    calls = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor):
        calls.append(("fsync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        fsync(descriptor)

    def record_replace(source, target):
        calls.append(("rename", Path(source).name, Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    return calls


def fail_at(monkeypatch, name, count):
    """The `count`-th call of os.`name` finds the disk full."""
    real, left = getattr(os, name), [count]

    def sometimes(*arguments):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    monkeypatch.setattr(os, name, sometimes)


def test_a_file_is_on_disk_before_it_has_its_name_and_the_name_is_forced_after(tmp_path, order):
    write_atomically(tmp_path / "x.json", "né")
    assert order == [("fsync", ".x.json.tmp"), ("rename", ".x.json.tmp", "x.json"), ("fsync", tmp_path.name)]
    assert (tmp_path / "x.json").read_bytes() == b"n\xc3\xa9"


def test_a_folder_is_on_disk_before_it_has_its_name_children_first(tmp_path, order):
    write_folder(tmp_path / "c", fill_with("1"))
    assert order[-2:] == [("rename", ".c.tmp", "c"), ("fsync", tmp_path.name)]
    synced = [name for _, name in order[:-2]]
    assert sorted(synced) == [".c.tmp", "a", "b", "deep"]
    assert synced.index("b") < synced.index("deep")
    assert synced[-1] == ".c.tmp"


@pytest.mark.parametrize(("name", "count"), [("fsync", 1), ("replace", 1)])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name, count):
    (tmp_path / "x").write_text("old")
    fail_at(monkeypatch, name, count)
    with pytest.raises(RegardError, match=r"x: not written \(No space left on device\)") as caught:
        write_atomically(tmp_path / "x", b"new")
    assert "\n" not in str(caught.value)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"x": "old"}


@pytest.mark.parametrize(
    ("name", "count"), [("fsync", 1), ("fsync", 2), ("fsync", 3), ("fsync", 4), ("replace", 1), ("replace", 2)]
)
def test_a_full_disk_leaves_the_old_folder_and_nothing_else(tmp_path, monkeypatch, name, count):
    write_folder(tmp_path / "c", fill_with("old"))
    fail_at(monkeypatch, name, count)
    with pytest.raises(RegardError, match=r"c: not written \(No space left on device\)"):
        write_folder(tmp_path / "c", fill_with("new"))
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
    assert (tmp_path / "c" / "a").read_text() == (tmp_path / "c" / "deep" / "b").read_text() == "old"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_filling_that_fails_leaves_the_old_folder_and_nothing_else(tmp_path, error):
    write_folder(tmp_path / "c", fill_with("old"))

    def fill(folder):
        fill_with("new")(folder)
        raise error

    with pytest.raises(RegardError if isinstance(error, OSError) else KeyboardInterrupt):
        write_folder(tmp_path / "c", fill)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
    assert (tmp_path / "c" / "a").read_text() == "old"


def test_a_folder_replaces_an_earlier_one_whole(tmp_path):
    write_folder(tmp_path / "c", fill_with("old"))
    write_folder(tmp_path / "c", lambda folder: (folder / "only").touch())
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["c", "c/only"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".c.tmp").mkdir()
    (tmp_path / ".c.tmp" / "half").touch()
    (tmp_path / ".x.tmp").write_text("half")
    write_folder(tmp_path / "c", fill_with("1"))
    write_atomically(tmp_path / "x", "1")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "x"]


def test_a_writer_killed_between_its_renames_loses_nothing(tmp_path):
    write_folder(tmp_path / "c", fill_with("old"))
    (tmp_path / "c").rename(tmp_path / ".c.old")
    settle(tmp_path / "c")
    assert (tmp_path / "c" / "a").read_text() == "old"


def test_a_writer_killed_after_its_renames_has_written(tmp_path):
    write_folder(tmp_path / "c", fill_with("new"))
    write_folder(tmp_path / ".c.old", fill_with("old"))
    settle(tmp_path / "c")
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
    assert (tmp_path / "c" / "a").read_text() == "new"


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RegardError, match="not written"):
        write_atomically(tmp_path / "file" / "x", "1")
    with pytest.raises(RegardError, match="not written"):
        write_folder(tmp_path / "file" / "c", fill_with("1"))


@pytest.fixture
def model(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"abc")
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / ".hidden").touch()
    (tmp_path / "checkpoints").mkdir()
    write_manifest(tmp_path, {"steps": 7})
    return tmp_path


def test_a_manifest_lists_the_checksum_of_every_file_beside_it(model):
    expected = {"a.bin": hashlib.sha256(b"abc").hexdigest(), "b.txt": hashlib.sha256(b"b").hexdigest()}
    assert manifest(model) == expected
    assert check_manifest(model) == {"format": 1, "files": expected, "steps": 7}


def test_notes_beside_a_model_are_allowed(model):
    (model / "notes.md").touch()
    check_manifest(model)


def test_a_changed_file_is_named(model):
    (model / "a.bin").write_bytes(b"abd")
    with pytest.raises(ModelFormatError, match=r"a\.bin: changed"):
        check_manifest(model)


def test_a_missing_file_is_named(model):
    (model / "b.txt").unlink()
    with pytest.raises(ModelFormatError, match=r"b\.txt: missing"):
        check_manifest(model)


@pytest.mark.parametrize("name", ["../secret", "deep/file", "..", "", "a\\b"])
def test_a_manifest_cannot_point_elsewhere(model, name):
    (model / "manifest.json").write_text(json.dumps({"format": 1, "files": {name: "0" * 64}}))
    with pytest.raises(ModelFormatError, match="not a plain file name"):
        check_manifest(model)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not valid JSON"),
        ("[]", "no list of files"),
        ('{"format": 2, "files": {}}', "format 2, this Regard reads 1"),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(model, content, complaint):
    (model / "manifest.json").write_text(content)
    with pytest.raises(ModelFormatError, match=complaint):
        check_manifest(model)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    with pytest.raises(ModelFormatError, match="No such file"):
        check_manifest(tmp_path)
