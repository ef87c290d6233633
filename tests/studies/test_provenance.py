"""Where a figure comes from is said, or said not to be known."""

import re
import subprocess

from regard.studies import provenance


def test_code_outside_a_repository_has_no_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    assert provenance.commit() == "unknown"


def test_a_copy_inside_somebody_elses_repository_is_not_their_commit(monkeypatch, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "errors.py").touch()  # there, but not theirs
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    assert provenance.commit() == "unknown"


def test_a_changed_file_is_told_by_a_plus(monkeypatch, tmp_path):
    def git(*words):
        mine = ["-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *mine, *words], cwd=tmp_path, check=True, capture_output=True)

    package = tmp_path / "package"
    package.mkdir()
    (package / "errors.py").write_text("a")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "x")
    monkeypatch.setattr(provenance, "PACKAGE", package)
    clean = provenance.commit()
    assert re.fullmatch("[0-9a-f]{12}", clean)
    (package / "errors.py").write_text("b")
    assert provenance.commit() == f"{clean}+"


def test_a_machine_has_cores_and_versions():
    assert re.search(r", \d+ cores, \d+ threads, .*Python 3\.\d+\.\d+, torch \d", provenance.machine())
