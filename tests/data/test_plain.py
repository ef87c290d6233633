"""Plain text arrives whole: nothing between the files and the two sides of the split is lost or told twice."""

import gzip
import lzma
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from regard.data.options import TextCorpusOptions
from regard.data.plain import count_lines, load_texts, split_documents, split_end
from regard.errors import DataError


def load(*corpora: TextCorpusOptions, valid_size: int | None = None, bad_lines="refuse", seed: int = 0):
    return load_texts(corpora, valid_size, bad_lines, seed)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tiny_shakespeare() -> Path:
    root = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = root / "tinyshakespeare" / "input.txt.gz"
    if not path.exists():
        pytest.skip("needs tinyshakespeare/input.txt.gz beneath the folder that REGARD_DATA names")
    return path


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("file", ["one\n\n two\nthree\n   \n\nfour\n"]),
        ("line", ["one", " two", "three", "four"]),
        ("paragraph", ["one", " two\nthree", "four"]),
    ],
)
def test_a_document_is_a_file_or_a_line_or_what_blank_lines_separate(kind, expected):
    assert list(split_documents(["one", "", " two", "three", "   ", "", "four"], kind)) == expected


@pytest.mark.parametrize("kind", ["file", "line", "paragraph"])
def test_blank_documents_are_left_out(kind):
    assert list(split_documents(["", "  "], kind)) == []


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_whole_file_comes_back_as_it_was_written(tmp_path, pack):
    text = "Erste Zeile\n\n\tzweite — 漢字\u2028 \x0c \n" * 5
    name = {bytes: "a.txt", gzip.compress: "a.txt.gz", lzma.compress: "a.txt.xz"}[pack]
    loaded = load(TextCorpusOptions(files=(write(tmp_path / name, pack(text.encode())),), valid_share=0.3))
    assert "".join(loaded.training + loaded.validation) == text


@pytest.mark.parametrize("share", [0.05, 0.1, 0.37, 0.9])
def test_both_sides_together_are_the_text_and_the_share_is_exact(share):
    documents = ["abc", "d", "efghijklm", "no", "pqrstuvwxyz"]
    begin, end = split_end(documents, share)
    assert "".join(begin) + "".join(end) == "".join(documents)
    assert len("".join(begin)) == int(26 * (1 - share))
    assert all(begin)
    assert all(end)
    assert len(begin) + len(end) <= len(documents) + 1  # one document at most is cut in two


def test_tiny_shakespeare_is_split_where_everyone_splits_it():
    path = tiny_shakespeare()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        data = file.read()
    loaded = load(TextCorpusOptions(files=(path,)))
    assert loaded.training == [data[: int(len(data) * 0.9)]]
    assert loaded.validation == [data[int(len(data) * 0.9) :]]
    (account,) = loaded.report.corpora
    assert account.read == 40_000 == account.kept + account.dropped["held out"]


def test_given_validation_files_are_read_and_training_keeps_everything(tmp_path):
    one = TextCorpusOptions(files=(write(tmp_path / "a", "x\ny\n"), write(tmp_path / "b", "z\n")), documents="line")
    valid = (write(tmp_path / "v", "p\n\nq\n"),)
    two = TextCorpusOptions(files=(write(tmp_path / "c", "w\n"),), valid=valid, documents="line")
    loaded = load(one, two)
    assert loaded.training == ["x", "y", "z", "w"]
    assert loaded.validation == ["p", "q"]
    assert loaded.report.lines() == [
        f"{tmp_path / 'a'} + {tmp_path / 'b'}: 3 of 3 lines",
        f"{tmp_path / 'c'}: 1 of 1 lines",
        f"{tmp_path / 'v'}: 2 of 3 lines; left out: blank 1 (given)",
    ]


def test_hashed_documents_are_on_one_side_whatever_corpus_they_are_in(tmp_path):
    lines = [f"line {i % 30}" for i in range(50)]
    files = [write(tmp_path / name, "\n".join(part) + "\n") for name, part in (("a", lines[:25]), ("b", lines[25:]))]
    corpora = [TextCorpusOptions(files=(file,), documents="line", valid_share=None) for file in files]
    loaded = load(*corpora, valid_size=6)
    assert len(set(loaded.validation)) == 6
    assert not set(loaded.training) & set(loaded.validation)
    assert sorted(loaded.training + loaded.validation) == sorted(lines)
    assert load(*corpora, valid_size=6).validation == loaded.validation
    assert load(*reversed(corpora), valid_size=6).validation != []
    assert set(load(*reversed(corpora), valid_size=6).validation) == set(loaded.validation)
    assert set(load(*corpora, valid_size=6, seed=1).validation) != set(loaded.validation)


def test_the_two_ways_to_split_go_side_by_side(tmp_path):
    one = TextCorpusOptions(files=(write(tmp_path / "a", "0123456789"),), valid_share=0.2)
    two = TextCorpusOptions(files=(write(tmp_path / "b", "x\ny\n"),), documents="line", valid_share=None)
    loaded = load(one, two, valid_size=1)
    assert loaded.training[0] + loaded.validation[0] == "0123456789\n"
    assert {*loaded.training[1:], *loaded.validation[1:]} == {"x", "y"}
    assert len(loaded.validation) == 2


@pytest.mark.parametrize("kind", ["file", "line", "paragraph"])
@pytest.mark.parametrize("share", [0.1, 0.35, 0.8])
def test_every_line_is_accounted_for(tmp_path, kind, share):
    content = b"".join(b"line %d of many\n%s" % (i, b"\n" * (i % 3 == 0)) for i in range(40)) + b"na\xefve\n"
    corpus = TextCorpusOptions(files=(write(tmp_path / "a", content),), documents=kind, valid_share=share)
    loaded = load(corpus, bad_lines="drop")
    (account,) = loaded.report.corpora
    assert account.read == content.count(b"\n") == account.kept + sum(account.dropped.values())
    assert account.dropped["bad encoding"] == 1
    assert account.dropped["held out"] == sum(map(count_lines, loaded.validation)) == loaded.report.validation.kept
    whole = sum(map(count_lines, loaded.training))
    assert account.kept in (whole, whole - 1)  # the line that was cut in two counts as held out


def test_a_line_as_long_as_a_book_is_text(tmp_path):
    loaded = load(TextCorpusOptions(files=(write(tmp_path / "a", "ab" * 150_000),)))
    assert sum(map(len, loaded.training + loaded.validation)) == 300_001


def test_text_that_is_not_utf_8_is_refused_by_its_line(tmp_path):
    path = write(tmp_path / "a", b"one\ntwo\nna\xefve\n")
    with pytest.raises(DataError, match=r"a, line 3: found byte 0xEF at position 3, which is not UTF-8"):
        load(TextCorpusOptions(files=(path,)))


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        ("", {}, "the file is empty"),
        ("\n \n", {}, "found no text in 2 lines"),
        ("\n \n", {"documents": "line"}, "found no text in 2 lines"),
        ("a", {"valid_share": 0.9}, "0.9 of 2 characters leaves one side empty"),
        ("one", {"valid_share": None}, "1 validation documents cannot be carved out of 1 different sources"),
    ],
)
def test_text_that_cannot_be_split_is_refused(tmp_path, content, given, message):
    with pytest.raises(DataError, match=message):
        load(TextCorpusOptions(files=(write(tmp_path / "a", content),), **given))


def test_no_corpus_and_no_file_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"data\.texts: found no corpus"):
        load()
    with pytest.raises(DataError, match="nowhere: no such file"):
        load(TextCorpusOptions(files=(tmp_path / "nowhere",)))
    with pytest.raises(ValidationError, match="at least 1 item"):
        TextCorpusOptions(files=())
