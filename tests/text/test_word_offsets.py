"""Every tokeniser's pieces find their way back to the user's words."""

import pytest
from published_examples import everywhere, write_byte_level, write_marian, write_t5, write_wordpiece

from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.offsets import word_spans, words_of
from regard.text.options import TextOptions
from regard.text.published import read_byte_level, read_marian, read_t5, read_wordpiece
from regard.text.symbols import Symbols
from regard.text.tokeniser import Piece

LINES = ["the cat sat on the mat and the dog sat on the cat", "die Katze saß auf der Matte", "a <s> b </s> c"]
LEARNED = {
    "bpe": lambda _: learn(LINES, TextOptions(kind="bpe", size=330), seed=1),
    "unigram": lambda _: learn(LINES, TextOptions(kind="unigram"), seed=1),
    "bytes": lambda _: Bytes(),
    "characters": lambda _: Characters(sorted({c for line in LINES for c in line})),
    "symbols": lambda _: Symbols.learn(LINES),
    "byte-level": lambda folder: read_byte_level(write_byte_level(folder)),
}
NORMALISING = {
    "wordpiece": lambda folder: read_wordpiece(write_wordpiece(folder)),
    "t5": lambda folder: read_t5(write_t5(folder)),
    "marian": lambda folder: read_marian(write_marian(folder))[0],
}
KINDS = LEARNED | NORMALISING


@pytest.fixture(scope="module")
def tokenisers(tmp_path_factory):
    return {kind: build(tmp_path_factory.mktemp("text") / kind) for kind, build in KINDS.items()}


def test_words_are_what_splitting_gives():
    def law(text):
        assert [text[start:end] for start, end in word_spans(text)] == text.split()

    everywhere(law)


@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_belongs_to_the_words_that_it_has_characters_of(kind, tokenisers):
    def law(text):
        owners: list[int | None] = [None] * len(text)
        for number, (start, end) in enumerate(word_spans(text)):
            owners[start:end] = [number] * (end - start)
        pieces = tokenisers[kind].pieces(text)
        found = words_of(pieces, text)
        assert len(found) == len(pieces)
        for piece, words in zip(pieces, found, strict=True):
            own = {o for o in owners[piece.start : piece.end] if o is not None}
            later = [o for o in owners[piece.start :] if o is not None]  # blanks belong to what follows them
            assert list(words) == sorted(own or later[:1] or [o for o in owners if o is not None][-1:])

    everywhere(law)


@pytest.mark.parametrize("kind", LEARNED)
def test_the_pieces_of_a_word_cover_it(kind, tokenisers):
    def law(text):
        pieces = tokenisers[kind].pieces(text)
        covered = [set() for _ in word_spans(text)]
        for piece, words in zip(pieces, words_of(pieces, text), strict=True):
            for word in words:
                covered[word] |= set(range(piece.start, piece.end))
        assert all(set(range(start, end)) <= covered[word] for word, (start, end) in enumerate(word_spans(text)))

    everywhere(law)


def test_blanks_belong_to_the_word_after_them_and_the_last_to_the_last():
    text = "ab  cd "
    blanks = [Piece(4, "", i, i + 1) for i in range(7)]
    assert [list(words) for words in words_of(blanks, text)] == [[0], [0], [1], [1], [1], [1], [1]]
    assert words_of([Piece(4, "", 0, 0), Piece(4, "", 7, 7)], text) == [range(1), range(1, 2)]  # no character at all
    assert words_of(blanks[:1], " ") == [range(0)]


def test_a_long_piece_belongs_to_several_words():
    text = " ab  c\u3000d"
    pieces = [Piece(4, "", start, end) for start, end in [(0, 2), (2, 3), (2, 6), (0, 8), (7, 8)]]
    assert [list(words) for words in words_of(pieces, text)] == [[0], [0], [0, 1], [0, 1, 2], [2]]
