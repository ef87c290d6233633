"""Alignments beside a corpus: line n is pair n, whatever is wrong is named, and words become tokens."""

import pytest

from regard.data.alignment import piece_links, read_gold, with_alignment
from regard.data.corpus import load_corpora
from regard.data.options import CorpusOptions, DataOptions
from regard.data.pairs import Pair
from regard.errors import DataError
from regard.evaluation.alignment import parse_links
from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.offsets import words_of
from regard.text.options import TextOptions

PAIRS = [Pair("a b", "A B"), Pair("c", "C D"), Pair("e f g", "E")]


@pytest.fixture
def write(tmp_path):
    def to(name, *lines):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return tmp_path / name

    return to


def test_each_pair_gets_its_line(write):
    found = list(with_alignment(PAIRS, write("links", "0-0 1-1", "", "2-0 0-0")))
    assert [pair.alignment for pair in found] == ["0-0 1-1", "", "2-0 0-0"]
    assert found == PAIRS  # what is known of a pair does not make it another


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["0-0", "0-0"], "links has 2 lines, its corpus has 3 pairs"),
        (["0-0", "0-0", "", ""], "links has 4 lines, its corpus has 3 pairs"),
        (["0-0", "0-2", ""], "links, line 2: found the link 0-2, but the pair has 1 source and 2 target words"),
        (["0-0", "0p1", ""], "links, line 2: found 0p1, expected links that are sure"),
        (["0-0", "", "null"], "links, line 3: found 'null', expected links such as 0-2"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(write, lines, words):
    with pytest.raises(DataError, match=words):
        list(with_alignment(PAIRS, write("links", *lines)))


def test_gold_links_are_read_beside_their_pairs(write):
    gold = read_gold(write("gold", "0-0 1p1", "", "2-0"), PAIRS)
    assert [len(one.sure) for one in gold] == [1, 0, 1]
    assert gold[0].possible == {(0, 0), (1, 1)}
    with pytest.raises(DataError, match="gold has 2 lines for 3 pairs"):
        read_gold(write("gold", "0-0", ""), PAIRS)
    with pytest.raises(DataError, match="gold, line 1: found the link 7-7"):
        read_gold(write("gold", "7p7", "", ""), PAIRS)


def test_pairs_that_are_left_out_take_their_links_with_them(write):
    source, target = write("s", "a b", "", "a b", "c d", "e"), write("t", "A B", "X", "A B", "C D", "E")
    links = write("links", "0-0 1-1", "", "0-1", "1-0", "0-0")
    corpus = CorpusOptions(source=source, target=target, alignment=links)
    valid = CorpusOptions(source=source, target=target)
    loaded = load_corpora(DataOptions(corpora=(corpus,), valid=valid))
    kept = {pair.source: pair.alignment for pair in loaded.corpora[0].pairs}
    assert kept == {"a b": "0-0 1-1", "c d": "1-0", "e": "0-0"}  # one is empty, one a duplicate
    assert all(pair.alignment is None for pair in loaded.validation)
    assert corpus.files == (source, target, links)


def test_options_that_would_part_pairs_and_links_are_refused():
    corpus = {"source": "s", "target": "t", "alignment": "links"}
    with pytest.raises(ValueError, match="bad_lines: drop would part pairs from the lines of their alignment"):
        DataOptions(corpora=(CorpusOptions(**corpus),), bad_lines="drop")
    with pytest.raises(ValueError, match=r"valid\.alignment: nothing is learned from it"):
        DataOptions(corpora=(CorpusOptions(**corpus),), valid=CorpusOptions(**corpus))


# ---------------------------------------------------------------- tokens
def test_links_of_tokens_by_hand():
    """'ab c' → 'D EF': tokens 0 1 and 2 3 on the left, 0 and 1 2 3 on the right; target first."""
    letters = Characters("abc DEF")
    found = piece_links(Pair("ab c", "D EF", "0-1 1-0"), letters, letters)
    assert found.tolist() == [[0, 2], [0, 3], [1, 0], [1, 1], [2, 0], [2, 1], [3, 0], [3, 1]]
    assert piece_links(Pair("ab c", "D EF"), letters, letters).tolist() == []


def test_tokens_are_linked_if_their_words_are():
    lines = ["the cat sat on the mat", "die Katze saß auf der Matte"] * 3
    pair = Pair(lines[0], lines[1], "0-0 1-1 2-2 3-3 4-4 5-5 5-1")
    links = parse_links(pair.alignment, "here")
    for source, target in ((learn(lines, TextOptions(size=300), seed=1), Bytes()),):
        theirs = words_of(source.pieces(pair.source), pair.source)
        ours = words_of(target.pieces(pair.target), pair.target)
        expected = [
            [t, s]
            for t in range(len(ours))
            for s in range(len(theirs))
            if any((i, j) in links for i in theirs[s] for j in ours[t])
        ]
        assert piece_links(pair, source, target).tolist() == expected
        assert len(expected) > len(links)
