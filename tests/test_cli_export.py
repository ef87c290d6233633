"""`regard export`, and translating with what it wrote."""

import json
import sys

import pytest

LINES = b"abc de\n\nedc ba\nab ea\n"


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    from regard.exporting.ctranslate2 import export_ctranslate2

    out = tmp_path_factory.mktemp("exported") / "out"
    export_ctranslate2(model, out)
    return out


def test_both_engines_translate_alike_exported_or_not(regard, model, exported):
    ours = regard("translate", model, "--json", stdin=LINES)
    for path in (model, exported):
        theirs = regard("translate", path, "--engine", "ctranslate2", "--json", stdin=LINES)
        assert theirs.code == 0, theirs
        for one, other in zip(ours.lines, theirs.lines, strict=True):
            one, other = json.loads(one), json.loads(other)
            assert other["text"] == one["text"]
            assert other["candidates"][0]["tokens"] == one["candidates"][0]["tokens"]
            assert other["candidates"][0]["score"] == pytest.approx(one["candidates"][0]["score"], abs=1e-4)


def test_export_says_what_it_wrote_and_the_result_translates(regard, model, tmp_path):
    out = tmp_path / "int8"
    ended = regard("export", model, "--to", "ctranslate2", "--out", out, "--quantise", "int8")
    assert (ended.code, ended.lines) == (0, [f"{out}: {model} for ctranslate2, int8"])
    found = regard("translate", out, "--engine", "ctranslate2", "--n-best", 2, stdin=b"abc de\n")
    assert len(found.lines) == 2


def test_both_engines_evaluate_alike(regard, model, exported, corpus):
    files = ("--source", corpus / "test.source", "--target", corpus / "test.target", "--json")
    ours = json.loads(regard("evaluate", model, *files).out)
    theirs = json.loads(regard("evaluate", exported, "--engine", "ctranslate2", *files).out)
    assert theirs["exact_match"] == ours["exact_match"]
    assert theirs["perplexity"] == pytest.approx(ours["perplexity"], rel=1e-3)
    assert theirs["bleu"]["signature"] == ours["bleu"]["signature"]


def test_a_directory_that_is_not_empty_stays_as_it_is(regard, model, exported):
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    regard("export", model, "--to", "ctranslate2", "--out", exported).refused(str(exported), "already exists")
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before


def test_the_torch_engine_says_that_a_directory_was_exported(regard, exported):
    regard("translate", exported, stdin=LINES).refused("exported for CTranslate2", "ctranslate2 engine")


def test_ctranslate2_refuses_to_sample(regard, exported):
    regard("translate", exported, "--engine", "ctranslate2", "--sample", stdin=LINES).refused("torch engine")


def test_without_the_library_one_line_says_how_to_get_it(regard, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    asked = regard("translate", model, "--engine", "ctranslate2", stdin=LINES)
    asked.refused('pip install "regard[fast]"')


def test_what_argos_needs_is_asked_for_and_of_no_use_elsewhere(regard, model, tmp_path):
    out = tmp_path / "out"
    regard("export", model, "--to", "argos", "--out", out, "--from-code", "en").refused("--to-code de")
    regard("export", model, "--to", "ctranslate2", "--out", out, "--to-code", "de").refused("only with --to argos")
    codes = ("--from-code", "en", "--to-code", "de")
    regard("export", model, "--to", "argos", "--out", out, *codes).refused("text.kind", "characters")
    assert not out.exists()


def test_unknown_programs_and_engines_are_wrong_usage(regard, model, tmp_path):
    assert regard("export", model, "--to", "onnx", "--out", tmp_path / "out").code == 2
    assert regard("translate", model, "--engine", "marian").code == 2
