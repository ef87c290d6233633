"""`regard translate` with words that must be there, and with whole texts."""

import pytest

from regard.documents import translate_text
from regard.engine import load

STDIN = b"abc de\ncab ba\n\n"


@pytest.fixture
def terms(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("de\tBAD\ncab ba\tED\n", encoding="utf-8")
    return path


def test_a_glossary_and_kept_terms_are_followed(regard, model, terms):
    found = regard("translate", model, "--glossary", terms, "--keep", "abc", stdin=STDIN)
    assert (found.code, len(found.lines)) == (0, 3)
    assert {"abc", "BAD"} <= set(found.lines[0].split())
    assert "ED" in found.lines[1].split()
    assert found.lines[2] == ""
    other = b"abd\n"
    same = ("--glossary", terms, "--keep", "abc")
    assert regard("translate", model, *same, stdin=other) == regard("translate", model, stdin=other)


def test_workers_keep_what_one_process_keeps(regard, model, terms):
    options = ("--glossary", terms, "--keep", "abc")
    alone = regard("translate", model, *options, "--workers", 1, stdin=STDIN)
    assert regard("translate", model, *options, "--workers", 2, stdin=STDIN) == alone


def test_placeholders_are_kept_unless_nobody_wants_them(regard, model):
    line = b"ab %s cd {x}\n"
    assert {"%s", "{x}"} <= set(regard("translate", model, stdin=line).lines[0].split())
    assert "%s" not in regard("translate", model, "--no-keep-placeholders", stdin=line).out


def test_a_whole_text_keeps_its_shape(regard, model, tmp_path):
    text = "  abc de. ab\r\n\n\tcab\n---\n"
    found = regard("translate", model, "--format", "text", "--language", "en", stdin=text.encode())
    assert found.out == translate_text(load(model), text, language="en")
    assert [line[: len(line) - len(line.lstrip())] for line in found.out.split("\n")] == ["  ", "", "\t", "", ""]
    (tmp_path / "in.html").write_text('<p class="x">abc <b>de</b></p><pre>ab</pre>', encoding="utf-8")
    page = regard("translate", model, "--format", "html", "--input", tmp_path / "in.html", "--output", tmp_path / "out")
    assert (page.code, page.out) == (0, "")
    said = (tmp_path / "out").read_text(encoding="utf-8")
    assert said.startswith('<p class="x">')
    assert said.endswith("</p><pre>ab</pre>")
    assert said.count("<b>") == said.count("</b>") == 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--sample", "--keep", "a"), ("--keep", "without --sample")),
        (("--language", "en"), ("--language", "--format")),
        (("--format", "html", "--n-best", 2), ("--n-best", "html")),
        (("--format", "text", "--json"), ("--json", "text")),
        (("--format", "text", "--prefix", "A"), ("--prefix", "text")),
        (("--format", "text", "--workers", 2), ("--workers", "text")),
        (("--keep", " a"), ("keep ' a'", "white space")),
        (("--glossary", "nowhere.tsv"), ("nowhere.tsv",)),
        (("--format", "text", "--input", "nowhere.txt"), ("nowhere.txt",)),
    ],
)
def test_options_that_cannot_be_followed_are_refused(regard, model, asked, words):
    regard("translate", model, *asked, stdin=b"ab\n").refused(*words)


def test_a_term_that_the_model_cannot_write_is_named(regard, model, tmp_path):
    (tmp_path / "terms.tsv").write_text("ab\tЖ\n", encoding="utf-8")
    glossary = ("--glossary", tmp_path / "terms.tsv")
    regard("translate", model, *glossary, stdin=b"ab\n").refused("'Ж'", "vocabulary lacks")
    (tmp_path / "terms.tsv").write_text("ab\tDDD\n", encoding="utf-8")
    regard("translate", model, *glossary, "--engine", "ctranslate2", stdin=b"ab\n").refused("use the torch engine")


@pytest.mark.parametrize(
    ("stdin", "words"), [(b"ab\n\xff", ("stdin, line 2", "UTF-8")), (b"a\n\nb\0", ("stdin, line 3", "NUL"))]
)
def test_a_text_that_is_none_is_refused(regard, model, stdin, words):
    regard("translate", model, "--format", "text", stdin=stdin).refused(*words)
