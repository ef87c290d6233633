"""What the frontier says of a student follows from the seconds and the outputs of its turns."""

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from benchmarks import frontier
from benchmarks.decoding import FP32, SHORTLIST, Measured
from benchmarks.frontier import Way, drawn, figures, find, size_of

REFERENCES = ["a b c d e", "f g h i j"]
XML = "{http://www.w3.org/2000/svg}"


def way(who, engine, beam, seconds, texts):
    measured = Measured(list(seconds), list(texts), 12)
    return Way(who, engine, beam, SimpleNamespace(), SimpleNamespace(), 3 * 2**20, measured, 5 * 2**20)


@pytest.fixture
def ways():
    poor = ["a b c d x", "f g h i"]
    return [way("teacher", FP32, 5, [4.0, 6.0, 5.0], REFERENCES), way("student", SHORTLIST, 1, [1.0, 3.0, 1.25], poor)]


def test_the_student_is_as_many_times_as_fast_as_its_words_came_faster(ways):
    found = figures(ways, REFERENCES)
    # The quotients are 4, 2 and 4; nine words came instead of ten.
    assert found["student_words_vs_ctranslate2_teacher"] == pytest.approx(4.0 * 9 / 10)
    assert found["teacher, CTranslate2 fp32, beam 5: words/s"] == 10 / 5.0
    assert found["student, Regard, shortlist, beam 1: files, MB"] == 3
    assert found["student, Regard, shortlist, beam 1: memory, MB"] == 5
    teacher, student = (found[f"{way.name}: BLEU"] for way in ways)
    assert teacher == pytest.approx(100)
    assert found["student_bleu_delta"] == pytest.approx(student - teacher)


def test_the_picture_has_a_dot_for_every_way_and_cost(ways):
    tree = ElementTree.fromstring(drawn(figures(ways, REFERENCES)))
    assert len(list(tree.iter(f"{XML}circle"))) == 2 * 3
    said = ["".join(node.itertext()) for node in tree.iter(f"{XML}text")]
    assert {"1 teacher, CTranslate2 fp32, beam 5", "2 student, Regard, shortlist, beam 1"} <= set(said)


def test_the_log_of_a_training_is_not_carried_along(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"12345")
    (tmp_path / "training.jsonl").write_bytes(b"1234567")
    (tmp_path / "checkpoints").mkdir()
    assert size_of(tmp_path) == 5


def test_what_is_compared_is_named_beforehand(ways):
    assert find(ways, frontier.LIMIT) is ways[0]
    assert find(ways, (*frontier.PATH, 1)) is ways[1]


def test_the_path_of_the_student_may_have_another_beam(ways):
    wider = way("student", SHORTLIST, 2, [2.0, 3.0, 2.5], REFERENCES)
    found = figures([*ways, wider], REFERENCES, beam=2)
    assert found["student_words_vs_ctranslate2_teacher"] == pytest.approx(2.0)
    assert found["student_bleu_delta"] == pytest.approx(0.0)


def test_every_text_has_files_of_its_own():
    assert frontier.file_name("multi30k-en-de") == "frontier"
    assert frontier.file_name("multi30k-en-fr") == "frontier-multi30k-en-fr"


def test_a_folder_without_the_corpus_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        frontier.main(["--teacher", "t", "--student", "s"])
    assert "does not hold multi30k/test_2016_flickr.en.gz" in capsys.readouterr().err
