"""`--workers` and `--shortlist`: the same lines faster, refused where they would change nothing or cannot be met."""

import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

from regard.commands import translate
from regard.files import write_manifest
from regard.recipe.folder import SHORTLIST, read_model

LINES = ["abc de", "", "a", "edc ba", "bad cab"]
STDIN = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def listed(model, tmp_path_factory):
    """The model with a shortlist in which a letter lists only its own capital; the end token is always there."""
    copy = tmp_path_factory.mktemp("listed") / "m"
    shutil.copytree(model, copy, ignore=shutil.ignore_patterns("checkpoints"))
    vocabulary = read_model(copy).vocabularies.source
    table = torch.full((len(vocabulary), 1), 3, dtype=torch.int32)
    for letter in "abcde":
        table[vocabulary.encode(letter)[0]] = vocabulary.encode(letter.upper())[0]
    save_file({"table": table, "always": table[:0, 0]}, copy / SHORTLIST)
    write_manifest(copy, {})
    return copy


def test_workers_give_the_lines_of_one_process(regard, model):
    options = ("--beam", 2, "--n-best", 2, "--prefix", "A")
    alone = regard("translate", model, *options, "--workers", 1, stdin=STDIN)
    assert regard("translate", model, *options, "--workers", 2, stdin=STDIN) == alone
    assert len(alone.lines) == 2 * len(LINES)


def test_many_lines_call_for_workers_and_few_do_not(regard, model, monkeypatch):
    asked = []

    class AskedError(Exception):
        pass

    def workers(model, count, *, shortlist, wishes):
        asked.append(count)
        raise AskedError

    monkeypatch.setattr(translate, "Workers", workers)
    monkeypatch.setattr(translate, "cores", lambda: 3)
    monkeypatch.setattr(translate, "MANY", len(LINES))
    few = STDIN.split(b"\n", 1)[1]
    assert regard("translate", model, stdin=few).code == 0
    assert regard("translate", model, "--sample", stdin=STDIN).code == 0
    assert not asked
    with pytest.raises(AskedError):
        regard("translate", model, stdin=STDIN)
    assert asked == [3]


def test_with_a_shortlist_only_what_is_listed_is_said(regard, listed, corpus, tmp_path):
    for text, allowed in (("abc", "ABC"), ("e", "E")):
        found = regard("translate", listed, "--shortlist", "--beam", 3, "--n-best", 3, stdin=text.encode())
        assert found.code == 0
        assert set("".join(found.lines)) <= set(allowed)
    files = ("--source", corpus / "test.source", "--target", corpus / "test.target", "--json")
    found = []
    for workers in (1, 2):
        output = ("--output", tmp_path / f"{workers}.txt", "--shortlist", "--workers", workers)
        found.append({**json.loads(regard("evaluate", listed, *files, *output).out), "seconds": 0})
    assert found[0] == found[1]
    said = (tmp_path / "1.txt").read_text()
    assert (tmp_path / "2.txt").read_text() == said
    assert " " not in said  # a space lists nothing


def test_a_shortlist_that_is_not_there_is_said_so(regard, model):
    regard("translate", model, "--shortlist", stdin=STDIN).refused("no shortlist")


def test_options_that_would_change_nothing_are_refused(regard, model):
    regard("translate", model, "--sample", "--workers", 2, stdin=STDIN).refused("--workers", "--sample")
    regard("translate", model, "--sample", "--shortlist", stdin=STDIN).refused("--shortlist", "--sample")
    regard("translate", model, "--engine", "ctranslate2", "--workers", 2, stdin=STDIN).refused("--workers")
    regard("translate", model, "--engine", "ctranslate2", "--shortlist", stdin=STDIN).refused("shortlist", "torch")
