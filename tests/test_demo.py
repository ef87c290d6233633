"""The demonstration in miniature: the same path with fewer dates and seconds."""

import re

import pytest

from regard import demo


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo, "TRAIN", 300)
    monkeypatch.setattr(demo, "VALID", 20)
    monkeypatch.setattr(demo, "TEST", 40)
    monkeypatch.setattr(
        demo, "SETTINGS", (*demo.SETTINGS, "model.width=16", "model.feedforward=16", "training.validations=1")
    )


def test_the_demo_ends_with_its_score_and_leaves_a_model_and_an_offline_report(small, tmp_path, regard):
    ended = regard("demo", "--out", tmp_path / "demo", "--budget", "2s")
    last = ended.out.splitlines()[-1]
    assert ended.code == 0
    assert re.fullmatch(r"exact match \d+\.\d\d %", last)
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "Learning" in page
    assert "Attention" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    score = regard(
        "evaluate",
        tmp_path / "demo" / "model",
        "--source",
        tmp_path / "demo" / "data" / "test.source",
        "--target",
        tmp_path / "demo" / "data" / "test.target",
    )
    assert last.removeprefix("exact match ") in score.out


def test_a_demo_that_cannot_start_leaves_nothing(small, tmp_path, regard):
    ended = regard("demo", "--out", tmp_path / "demo", "--budget", "soon")
    assert ended.code == 1
    assert "soon" in ended.err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "demo").mkdir()
    regard("demo", "--out", tmp_path / "demo").refused("already exists")
