"""Every way a corpus file can be wrong, and that good ones arrive unchanged."""

import gzip
import json
import lzma
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest

from regard.data.pairs import Pair
from regard.data.readers import read_jsonl, read_lines, read_parallel, read_stream, read_tsv
from regard.errors import DataError


@pytest.fixture
def write(tmp_path: Path):
    def _write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def refused(read) -> str:
    with pytest.raises(DataError) as caught:
        list(read)
    message = str(caught.value)
    assert "\n" not in message
    return message


PACKERS = {"a.txt": lambda raw: raw, "a.txt.gz": gzip.compress, "a.txt.xz": lzma.compress}


@pytest.mark.parametrize("name", PACKERS)
def test_a_packed_file_reads_like_the_plain_one(write, name):
    path = write(name, PACKERS[name](b"eins\nzwei drei\n\nvier"))
    assert list(read_lines(path)) == ["eins", "zwei drei", "", "vier"]


def test_only_a_line_feed_ends_a_line(write):
    inside = "a\u2028b\u2029c\u0085d\x0ce\x0bf\x1cg\rh"
    assert list(read_lines(write("a", f"{inside}\nnext\n"))) == [inside, "next"]


def test_one_carriage_return_before_the_line_feed_belongs_to_the_line_end(write):
    assert list(read_lines(write("a", "one\r\ntwo\r\r\nthree\r"))) == ["one", "two\r", "three"]


def test_a_byte_order_mark_is_dropped_at_the_start_of_the_file_only(write):
    assert list(read_lines(write("a", "\ufeffone\n\ufefftwo\n"))) == ["one", "\ufefftwo"]


def test_reading_lines_agrees_with_splitting_the_decoded_file(write):
    lines = [f"Zeile {i} " + "äß漢🙂"[i % 4] * i for i in range(40)]
    assert list(read_lines(write("a", "\n".join(lines) + "\n"))) == lines


def test_a_missing_file_is_named(tmp_path):
    assert "nowhere.txt: no such file" in refused(read_lines(tmp_path / "nowhere.txt"))


def test_a_folder_is_not_a_file(tmp_path):
    assert f"{tmp_path}: is a folder" in refused(read_lines(tmp_path))


@pytest.mark.parametrize(
    ("name", "content"),
    [("a", b""), ("a", b"\xef\xbb\xbf"), ("a.gz", gzip.compress(b"", mtime=0)), ("a.xz", lzma.compress(b""))],
)
def test_an_empty_file_is_refused(write, name, content):
    assert f"{name}: the file is empty" in refused(read_lines(write(name, content)))


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    path = tmp_path / ("x" * 300)
    assert "cannot be read" in refused(read_lines(path))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"caf\xe9", "byte 0xE9 at position 4, which is not UTF-8"),
        (b"\xed\xa0\x80", "byte 0xED at position 1"),  # a surrogate half
        (b"a\0b", "a NUL character"),
        (b"x" * 11, "11 characters, expected at most 10"),
    ],
)
def test_a_line_that_is_no_text_is_refused_with_its_number(write, line, found):
    path = write("a", b"good\n" + line + b"\ngood\n")
    message = refused(read_lines(path, limit=10))
    assert message.startswith(f"{path}, line 2: found {found}")
    assert "bad_lines" in message


def test_a_file_in_utf_16_is_recognised(write):
    assert "looks like UTF-16" in refused(read_lines(write("a", "ja\n".encode("utf-16"))))


@pytest.mark.parametrize("letter", ["x", "é", "漢", "🙂"])
def test_the_limit_counts_characters_not_bytes(write, letter):
    assert list(read_lines(write("a", letter * 10 + "\r\n"), limit=10)) == [letter * 10]
    assert "line 1" in refused(read_lines(write("a", letter * 11 + "\n"), limit=10))


def test_an_endless_line_is_refused(write):
    path = write("a", b"y" * 10_000_000)
    assert "line 1: found more than 100000 characters without a line break" in refused(read_lines(path))


def test_an_endless_line_is_dropped_whole(write):
    dropped: Counter[str] = Counter()
    path = write("a", b"first\n" + b"y" * 10_000_000 + b"\nlast\n")
    assert list(read_lines(path, "drop", dropped)) == ["first", "last"]
    assert dropped == {"too long": 1}


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.xz", lzma.compress)])
def test_a_packed_file_that_is_cut_short_or_damaged_is_refused(write, name, pack):
    packed = pack("\n".join(map(str, range(20_000))).encode())
    middle = len(packed) // 2
    flipped = packed[:middle] + bytes(255 - byte for byte in packed[middle : middle + 40]) + packed[middle + 40 :]
    for content in (packed[:middle], packed[:-3], flipped, b"not packed at all"):
        path = write(name, content)
        assert f"{path}: cut short or damaged" in refused(read_lines(path))


def test_parallel_lines_are_paired_in_order(write):
    pairs = read_parallel(write("s", "a\nb\n\n"), write("t", "A\nB\nC\n"))
    assert list(pairs) == [Pair("a", "A"), Pair("b", "B"), Pair("", "C")]


@pytest.mark.parametrize(("left", "right"), [(3, 5), (5, 3)])
def test_files_of_different_length_are_refused_with_both_counts(write, left, right):
    message = refused(read_parallel(write("s", "x\n" * left), write("t", "x\n" * right)))
    assert f"s has {left} lines" in message
    assert f"t has {right}" in message


def test_a_dropped_line_takes_its_partner_with_it_and_shifts_no_other_pair(write):
    source = write("s", b"s0\n\xff\ns2\ns3\ns4\ns5\n")
    target = write("t", b"t0\nt1\nt\x002\nt3\n" + b"t" * 30 + b"\nt5\n")
    dropped: Counter[str] = Counter()
    pairs = list(read_parallel(source, target, "drop", dropped, limit=20))
    assert pairs == [Pair(f"s{i}", f"t{i}") for i in (0, 3, 5)]
    assert dropped == {"bad encoding": 2, "too long": 1}


def test_a_pair_with_two_bad_lines_is_counted_once(write):
    dropped: Counter[str] = Counter()
    assert list(read_parallel(write("s", b"\xff\na\n"), write("t", b"\xfe\nb\n"), "drop", dropped)) == [Pair("a", "b")]
    assert dropped.total() == 1


def test_the_bad_line_of_the_target_file_is_named(write):
    assert "t, line 2" in refused(read_parallel(write("s", "a\nb\n"), write("t", b"a\n\xff\n")))


def test_a_tsv_line_is_source_tab_target(write):
    assert list(read_tsv(write("a.tsv", 'a "b\tc\nd\t\n'))) == [Pair('a "b', "c"), Pair("d", "")]


@pytest.mark.parametrize(("line", "found"), [("no tabulator", "no tab"), ("a\tb\tc", "2 tabs"), ("", "no tab")])
def test_a_tsv_line_without_exactly_one_tab_is_refused(write, line, found):
    path = write("a.tsv", f"a\tb\n{line}\n")
    assert refused(read_tsv(path)).startswith(f"{path}, line 2: found {found}, expected source, one tab, target")


def test_a_jsonl_line_gives_the_texts_under_its_keys(write):
    records = [{"source": "a\tb", "target": "ä", "id": 3}, {"target": "漢", "source": ""}]
    path = write("a.jsonl", "\n".join(json.dumps(record) for record in records))
    assert list(read_jsonl(path)) == [Pair("a\tb", "ä"), Pair("", "漢")]
    path = write("b.jsonl", '{"en": "x", "de": "y"}\n')
    assert list(read_jsonl(path, source_key="en", target_key="de")) == [Pair("x", "y")]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("[1, 2]", "found a list, expected an object"),
        ("7", "found a number, expected an object"),
        ("null", "found null, expected an object"),
        ("{'source': 1}", "which is not JSON"),
        ("", "which is not JSON"),
        ("[" * 50_000, "which is not JSON"),  # deeper than the parser's stack
        ('{"source": "a"}', "no key 'target', found 'source'"),
        ("{}", "no key 'source', found an empty object"),
        ('{"source": "a", "target": 3}', "'target' is a number, expected a text"),
        ('{"source": true, "target": "a"}', "'source' is true or false, expected a text"),
        (r'{"source": "a\u0000", "target": "a"}', "'source' contains U+0000"),
        (r'{"source": "a", "target": "\ud83d"}', "'target' contains U+D83D"),
    ],
)
def test_a_jsonl_line_that_holds_no_pair_is_refused(write, line, found):
    path = write("a.jsonl", '{"source": "a", "target": "b"}\n' + line + "\n")
    message = refused(read_jsonl(path))
    assert message.startswith(f"{path}, line 2: ")
    assert found in message


def test_escaped_characters_that_are_no_text_are_dropped_like_badly_encoded_lines(write):
    dropped: Counter[str] = Counter()
    path = write("a.jsonl", b'{"source": "\\ud800", "target": "b"}\n\xff\n{"source": "a", "target": "b"}\n')
    assert list(read_jsonl(path, bad_lines="drop", dropped=dropped)) == [Pair("a", "b")]
    assert dropped == {"bad encoding": 2}


def test_a_malformed_record_is_refused_even_where_bad_lines_are_dropped(write):
    assert "no tab" in refused(read_tsv(write("a.tsv", "a\tb\nc\n"), "drop"))


def test_a_stream_reads_like_a_file_but_may_be_empty():
    assert list(read_stream(BytesIO("\ufeffa\r\n\nb\u2028c".encode()), "stdin")) == ["a", "", "b\u2028c"]
    assert list(read_stream(BytesIO(b""), "stdin")) == []


def test_a_bad_line_of_a_stream_is_refused_under_its_name():
    assert refused(read_stream(BytesIO(b"a\nb\xff\n"), "stdin")).startswith(
        "stdin, line 2: found byte 0xFF at position 2"
    )
