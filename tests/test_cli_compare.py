"""`regard compare`: files and models alike, one line for every mistake, one page that opens without a network."""

import json
import re
import shutil

import pytest

from regard.evaluation import significance


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(significance, "RESAMPLES", 20)
    monkeypatch.setattr(significance, "TRIALS", 30)


@pytest.fixture
def files(tmp_path):
    """A source, a reference, and two systems of which B is right."""
    texts = {
        "source": ["eins zwei drei", "vier fünf sechs sieben acht neun zehn", "elf"],
        "target": ["one two three", "four five six seven eight nine ten", "eleven"],
        "a": ["one too", "four five six seven nine", "eleven"],
        "b": ["one two three", "four five six seven eight nine ten", "eleven"],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def arguments(folder, *more):
    return ("compare", folder / "a", folder / "b", "--source", folder / "source", "--target", folder / "target", *more)


def test_what_people_read_and_what_programs_read_are_one(regard, files):
    found = json.loads(regard(*arguments(files, "--json")).out)
    shown = regard(*arguments(files)).out
    assert (found["a"], found["b"]) == (str(files / "a"), str(files / "b"))
    assert (found["sentences"], found["identical"]) == (3, 1)
    for one in found["metrics"]:
        estimates = (f"{each['score']:.2f} ± {each['margin']:.2f}" for each in (one["a"], one["b"]))
        chances = (f"{one[test]['p']:.4f}" for test in ("bootstrap", "randomisation"))
        change = f"{one['difference']:+.2f} ± {one['margin']:.2f}"
        row = " ".join((one["metric"], *estimates, change, *chances))
        assert row in [" ".join(line.split()) for line in shown.splitlines()]
        assert one["signature"] in shown
        assert one["verdict"] in " ".join(shown.split())
    assert "six seven [eight] nine [ten]" in shown
    assert re.search(r"^0–5 +2 .* 0 +1 +1$", shown, re.MULTILINE)


def test_the_terminal_needs_no_more_than_eighty_columns(regard, files):
    for name in ("source", "a", "b"):
        (files / name).write_text((files / name).read_text().replace("one", "one " * 40).replace("eins", "\x1b[2J"))
    shown = regard(*arguments(files)).out
    texts = shown.partition("sentences,")[2]  # paths and signatures are never cut
    assert max(len(line) for line in texts.splitlines() if "nrefs" not in line) <= 80
    assert "\x1b" not in shown


def test_only_the_metrics_and_examples_that_are_asked_for_are_shown(regard, files):
    found = json.loads(regard(*arguments(files, "--json", "--metric", "chrf", "--metric", "chrf", "--examples", 0)).out)
    assert [one["metric"] for one in found["metrics"]] == ["chrF"]
    assert found["for_a"] == found["for_b"] == []


def test_a_model_is_compared_by_what_translate_says(regard, model, corpus, tmp_path):
    source = (corpus / "test.source").read_bytes()
    (tmp_path / "said").write_text("".join(f"{line}\n" for line in regard("translate", model, stdin=source).lines))
    options = ("--source", corpus / "test.source", "--target", corpus / "test.target", "--metric", "chrf", "--json")
    found = json.loads(regard("compare", model, tmp_path / "said", *options).out)
    assert found["identical"] == found["sentences"] == 20
    assert found["metrics"][0]["verdict"] == "A and B have the same chrF."
    evaluated = json.loads(regard("evaluate", model, *options[:4], "--json").out)
    assert found["metrics"][0]["a"]["score"] == evaluated["chrf"]["score"]


def test_a_beam_is_that_of_both_models_and_refused_where_there_is_none(regard, model, corpus, tmp_path, files):
    source = (corpus / "test.source").read_bytes()
    greedy = regard("translate", model, "--beam", 1, stdin=source).out
    assert greedy != regard("translate", model, stdin=source).out
    (tmp_path / "greedy").write_text(greedy)
    options = ("--source", corpus / "test.source", "--target", corpus / "test.target", "--metric", "chrf", "--json")
    found = json.loads(regard("compare", model, tmp_path / "greedy", *options, "--beam", 1).out)
    assert found["identical"] == found["sentences"] == 20
    regard(*arguments(files, "--beam", 3)).refused("--beam 3", "files of outputs")


def test_an_exported_model_speaks_with_its_own_engine(regard, model, corpus, tmp_path):
    pytest.importorskip("ctranslate2")
    assert regard("export", model, "--to", "ctranslate2", "--out", tmp_path / "exported").code == 0
    options = ("--source", corpus / "test.source", "--target", corpus / "test.target", "--metric", "chrf", "--json")
    source, engine = (corpus / "test.source").read_bytes(), ("--engine", "ctranslate2")
    said = regard("translate", tmp_path / "exported", *engine, stdin=source).out
    (tmp_path / "said").write_text(said)
    found = json.loads(regard("compare", tmp_path / "said", tmp_path / "exported", *options).out)
    assert found["identical"] == found["sentences"] == 20


def test_the_page_tells_the_same_and_loads_nothing(regard, files):
    (files / "a").write_text("<b>one\nfour five six seven nine\neleven\n")
    found = json.loads(regard(*arguments(files, "--json", "--out", files / "page.html")).out)
    page = (files / "page.html").read_text(encoding="utf-8")
    assert found["metrics"][0]["verdict"] in page
    for one in found["metrics"]:
        assert one["randomisation"]["signature"] in page
        assert f"{one['b']['score']:.2f}" in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?://", page)
    assert "<b>one" not in page
    assert "<mark>&lt;b&gt;one</mark>" in page
    assert "six seven <mark>eight</mark> nine <mark>ten</mark>" in page


@pytest.mark.parametrize("name", ["a", "b", "source", "target"])
def test_the_page_does_not_replace_what_is_compared(regard, files, name):
    before = (files / name).read_bytes()
    regard(*arguments(files, "--out", files / name)).refused(name, "would be lost")
    assert (files / name).read_bytes() == before


def test_a_line_too_long_for_ter_is_refused_before_other_scores_take_their_time(regard, files, monkeypatch):
    monkeypatch.setattr("regard.evaluation.compare.paired", None)
    for name in ("a", "target"):
        (files / name).write_text("word " * 151 + "\ntwo\nthree\n")
    regard(*arguments(files)).refused("line 1", "--metric bleu")


def test_mistakes_are_one_line(regard, files, tmp_path):
    regard("compare", files / "a", files / "a", *arguments(files)[3:]).refused("given as A and as B")
    regard("compare", files / "a", files / "none", *arguments(files)[3:]).refused("none", "no such file")
    (files / "b").write_text("one\ntwo\n")
    regard(*arguments(files)).refused("b has 2 lines", "source has 3", "one output for each source")
    (files / "target").write_text("one\ntwo\n")
    regard(*arguments(files)).refused("source has 3 lines", "target has 2")
    (files / "empty").mkdir()
    shutil.copy(files / "source", files / "target")
    regard("compare", files / "a", files / "empty", *arguments(files)[3:]).refused("empty")
