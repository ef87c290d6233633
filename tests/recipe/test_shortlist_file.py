"""The shortlist of a model directory: written by training where it can pay, read back as it was, refused when wrong."""

import json
import random
import shutil

import pytest
import torch
from safetensors.torch import save_file
from tiny_runs import options

from regard.errors import ModelFormatError
from regard.files import write_manifest
from regard.recipe.folder import SHORTLIST, read_model, write_shortlist
from regard.text.special import EOS


@pytest.fixture
def copy(model, tmp_path):
    return shutil.copytree(model, tmp_path / "copy", ignore=shutil.ignore_patterns("checkpoints"))


def write(folder, **tensors):
    save_file(tensors, folder / SHORTLIST)
    write_manifest(folder, {})


def ids(*size, value=EOS):
    return torch.full(size, value, dtype=torch.int32)


def test_what_is_written_is_read_back_and_no_file_is_no_list(copy):
    before = read_model(copy)
    assert before.shortlist is None
    source = len(before.vocabularies.source)
    write(copy, table=torch.arange(2 * source, dtype=torch.int32).reshape(source, 2) % source, always=ids(1, value=5))
    first = read_model(copy).shortlist
    assert first.ids([[4]]).tolist() == sorted({EOS, 5, 8 % source, 9 % source})
    write_shortlist(copy, first)
    write_manifest(copy, {})
    again = read_model(copy).shortlist
    assert torch.equal(again.table, first.table)
    assert torch.equal(again.always, first.always)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (lambda _: {"always": ids(1)}, "no tensor 'table'"),
        (lambda v: {"table": ids(v, 2)}, "no tensor 'always'"),
        (lambda v: {"table": ids(v, 2), "always": ids(1), "more": ids(1)}, "unknown tensor 'more'"),
        (lambda v: {"table": ids(v - 1, 2), "always": ids(1)}, "tensor 'table'"),
        (lambda v: {"table": ids(v), "always": ids(1)}, "tensor 'table'"),
        (lambda v: {"table": ids(v, 2), "always": ids(1, 1)}, "tensor 'always'"),
        (lambda v: {"table": ids(v, 2).long(), "always": ids(1)}, "int64"),
        (lambda v: {"table": ids(v, 2, value=v), "always": ids(1)}, "'table' holds ids outside"),
        (lambda v: {"table": ids(v, 2), "always": ids(3, value=-1)}, "'always' holds ids outside"),
    ],
    ids=["no table", "no always", "more", "short", "flat", "square", "long", "beyond", "below"],
)
def test_a_list_that_is_none_is_refused(copy, tensors, words):
    write(copy, **tensors(len(read_model(copy).vocabularies.source)))
    with pytest.raises(ModelFormatError, match=words):
        read_model(copy)


def test_bytes_that_are_no_tensors_are_refused(copy):
    (copy / SHORTLIST).write_bytes(b"no tensors")
    write_manifest(copy, {})
    with pytest.raises(ModelFormatError, match=SHORTLIST):
        read_model(copy)


def test_training_leaves_a_list_that_says_how_much_it_covers(regard, tmp_path):
    rng = random.Random(2)
    words = ["".join(rng.choice("abcdefgh") for _ in range(5)) for _ in range(1500)]
    lines = [f"{one} {two}" for one, two in zip(words, reversed(words), strict=True)]
    for name, change in (("source", str), ("target", str.upper)):
        (tmp_path / name).write_text("".join(f"{change(line)}\n" for line in lines))
    files = ("--source", tmp_path / "source", "--target", tmp_path / "target", "--out", tmp_path / "m")
    large = ("text.kind=bpe", "text.size=1100", "data.batch_tokens=512", "decoding.beam=1")
    assert regard("train", *files, "--steps", 1, "--quiet", *options(*large)).code == 0
    found = read_model(tmp_path / "m")
    facts = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert SHORTLIST in facts["files"]
    assert 0.5 < facts["shortlist"]["covers"] <= 1.0  # of words never seen, in pieces that were
    source, target = found.vocabularies.source, found.vocabularies.target
    listed = set(found.shortlist.ids([source.encode("1é")]).tolist())
    assert set(target.encode("1é")) <= listed  # copied, byte by byte
    assert len(listed) < 300
