"""Text that cannot be learned from: one line that says where and what, and nothing on disk."""

import pytest
from tiny_runs import options

GOOD = [f"ab {i}" for i in range(30)]


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


BAD = {  # target bytes → words of the answer
    "fewer lines": (lines(*GOOD[:-1]), ("30 lines", "29", "target")),
    "invalid UTF-8": (lines(*GOOD[:4]) + b"\xff\xfe\n" + lines(*GOOD[5:]), ("target, line 5", "0xFF", "UTF-8")),
    "a NUL": (lines(*GOOD[:2], "a\0b", *GOOD[3:]), ("target, line 3", "NUL")),
    "nothing": (b"", ("target", "empty")),
    "a megabyte in one line": (lines(*GOOD[:1], "a" * 2**20, *GOOD[2:]), ("target, line 2", "100000 characters")),
    "blank lines only": (b"\n" * 30, ("none of 30 pairs is left", '"empty"')),
    "one line": (lines("ab"), ("30 lines", "1;")),
}


@pytest.fixture
def attempt(regard, tmp_path):
    def run(*arguments):
        (tmp_path / "source").write_bytes(lines(*GOOD))
        files = ("--source", tmp_path / "source", "--target", tmp_path / "target")
        ended = regard("train", *files, "--out", tmp_path / "m", "--steps", 1, "--quiet", *options(), *arguments)
        assert sorted(path.name for path in tmp_path.iterdir() if path.name != "target") == ["source"]
        return ended

    return run


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_target_is_named_and_leaves_no_trace(attempt, tmp_path, kind):
    content, words = BAD[kind]
    (tmp_path / "target").write_bytes(content)
    attempt().refused(*words)


def test_a_missing_file_and_a_folder_are_named(attempt, tmp_path):
    attempt().refused("target", "no such file")
    (tmp_path / "target").mkdir()
    attempt().refused("target", "is a folder")


def test_too_little_text_to_hold_some_back_is_refused(attempt, tmp_path):
    (tmp_path / "target").write_bytes(lines(*GOOD))
    attempt("--set", "data.valid_size=30").refused("data.valid_size", "30 different sources")
    attempt("--set", "data.max_tokens=2").refused("data.max_tokens", "at most 2 tokens")


@pytest.mark.parametrize("kind", ["tsv", "jsonl"])
def test_a_record_that_is_none_is_named(regard, tmp_path, kind):
    (tmp_path / "x").write_text("neither\n")
    out = ("--out", tmp_path / "m", "--quiet", *options())
    regard("train", f"--{kind}", tmp_path / "x", *out).refused("x, line 1")
    assert not (tmp_path / "m").exists()


def test_separators_that_are_no_line_feed_stay_inside_their_line(regard, tmp_path):
    odd = [f"{text}\u2028x" if i % 2 else f"{text}\fx" for i, text in enumerate(GOOD)]
    (tmp_path / "source").write_bytes(b"\xef\xbb\xbf" + lines(*odd).replace(b"\n", b"\r\n"))
    (tmp_path / "target").write_bytes(lines(*GOOD))
    files = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    assert regard("train", *files, "--out", tmp_path / "m", "--steps", 1, "--quiet", *options()).code == 0
    alphabet = (tmp_path / "m" / "shared.json").read_text()
    assert "\\u2028" in alphabet
    assert "\\f" in alphabet
    assert "\\r" not in alphabet
    assert "\\ufeff" not in alphabet


def test_bad_test_sets_are_refused_like_bad_training_text(regard, model, tmp_path):
    (tmp_path / "s").write_bytes(lines("a", "b", "c"))
    (tmp_path / "t").write_bytes(lines("a", "b"))
    for command in ("evaluate", "score"):
        regard(command, model, "--source", tmp_path / "s", "--target", tmp_path / "t").refused("3 lines", "2")
        regard(command, model, "--source", tmp_path / "s", "--target", tmp_path / "x").refused("no such file")
