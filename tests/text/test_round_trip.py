"""Nothing that is written is lost: text to ids and back, and each id traced to its characters."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import EOS, NAMES, PAD, UNK
from regard.text.subwords import Subwords

LINES = [
    "the cat sat on the mat and the dog sat on the cat",
    "die Katze saß auf der Matte und der Hund saß auf der Katze",
    "a <s> b </s> c <0x41> <unk> <pad>",
    "the thing that the cat thought was there",
]
KINDS = {
    "bpe": learn(LINES, TextOptions(kind="bpe", size=340), seed=1),
    "unigram": learn(LINES, TextOptions(kind="unigram"), seed=1),
    "bytes": Bytes(),
    "characters": Characters(sorted({c for line in LINES for c in line})),
}
LOSSLESS = [KINDS["bpe"], KINDS["unigram"], KINDS["bytes"]]
LEARNED = [KINDS["bpe"], KINDS["unigram"]]

# Text that any tokeniser meets, mixed with text that is awkward for ours.
AWKWARD = ["▁", "▁▁", " ", "  ", "\t", "\n", "\x00", "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "<0xE2>", "▅", "\ufffd"]
AWKWARD += ["the", "Katze", "ß", "漢字", "e\u0301", "👩‍👩‍👧", "\u200b", "\ufeff", "\x85", "ﬁ", "\r"]
texts = st.lists(st.one_of(st.sampled_from(AWKWARD), st.text(max_size=5)), max_size=8).map("".join)
bounded = settings(max_examples=50, derandomize=True, deadline=None, database=None)


def awkward(law):
    for text in ["", "▁the", " the", "the ", "  ", "<s>", "▁ ▁", "\x00\x00", "x" * 40, "thecat" * 20, "漢" * 40]:
        law = example(text=text)(law)
    return bounded(given(text=texts)(law))


@awkward
def test_decoding_what_was_encoded_gives_the_text_back(text):
    for tokeniser in LOSSLESS:
        assert tokeniser.decode(tokeniser.encode(text)) == text


@awkward
def test_decoding_what_was_sampled_gives_the_text_back(text):
    for tokeniser in LOSSLESS:
        for dropout in (0.1, 0.6):
            assert tokeniser.decode(tokeniser.sample(text, dropout, random.Random(7))) == text


@awkward
def test_every_id_is_in_the_vocabulary_and_none_is_special(text):
    for tokeniser in LOSSLESS:
        for ids in (tokeniser.encode(text), tokeniser.sample(text, 0.3, random.Random(3))):
            assert all(len(NAMES) <= id < len(tokeniser) for id in ids)


@awkward
def test_pieces_are_those_of_encode_and_cover_each_character(text):
    for tokeniser in KINDS.values():
        pieces = tokeniser.pieces(text)
        assert [piece.id for piece in pieces] == tokeniser.encode(text)
        assert [piece.text for piece in pieces] == [tokeniser.name(piece.id) for piece in pieces]
        end = 0
        for piece in pieces:
            same_character = piece.end == piece.start + 1 == end
            assert piece.start == end or same_character
            end = piece.end
        assert end == len(text)


@awkward
def test_each_run_of_byte_pieces_spells_the_character_it_points_to(text):
    for tokeniser in LOSSLESS:
        spelled: dict[tuple[int, int], list[int]] = {}
        for piece in tokeniser.pieces(text):
            spelled.setdefault((piece.start, piece.end), []).append(piece.id)
        for (start, end), ids in spelled.items():
            assert tokeniser.decode(ids).removeprefix(" ") == text[start:end].removeprefix(" ")


@awkward
def test_without_byte_fallback_only_unknown_characters_are_lost(text):
    known = {c for line in LINES for c in line}
    for tokeniser in NO_FALLBACK:
        kept = "".join(c for c in text if c in known)
        for ids in (tokeniser.encode(text), tokeniser.sample(text, 0.3, random.Random(5))):
            assert tokeniser.decode(ids) == kept
            assert (UNK in ids) == (kept != text)
        spans = tokeniser.pieces(text)
        assert "".join(text[p.start : p.end] for p in spans) == text
        assert [p.id for p in spans] == tokeniser.encode(text)


NO_FALLBACK = [
    learn(LINES, TextOptions(kind="bpe", size=80, byte_fallback=False), seed=1),
    learn(LINES, TextOptions(kind="unigram", byte_fallback=False), seed=1),
]


def test_a_surrogate_is_read_as_the_replacement_character():
    for tokeniser in LOSSLESS:
        assert tokeniser.decode(tokeniser.encode("a\ud800b")) == "a\ufffdb"
        assert [(p.start, p.end) for p in tokeniser.pieces("\udfff")][-3:] == [(0, 1)] * 3


def test_special_ids_decode_to_nothing():
    for tokeniser in KINDS.values():
        ids = tokeniser.encode("the cat")
        assert tokeniser.decode([PAD, UNK, *ids[:1], PAD, *ids[1:], EOS]) == "the cat"
        assert tokeniser.decode([]) == tokeniser.decode([EOS]) == ""


def test_bytes_that_are_no_character_decode_to_the_replacement_character():
    for tokeniser in LOSSLESS:
        broken = tokeniser.encode("漢")[:-1]
        assert tokeniser.decode(broken) == "\ufffd"


def test_names_are_unique_printable_and_show_the_specials():
    for tokeniser in KINDS.values():
        names = [tokeniser.name(id) for id in range(len(tokeniser))]
        assert tuple(names[: len(NAMES)]) == NAMES
        assert all(name.isprintable() and " " not in name for name in names)
        assert len(set(names)) == len(names)


def test_pieces_of_a_known_sentence_point_to_its_words():
    bpe = KINDS["bpe"]
    text = "the 漢▁the"
    shown = [(text[p.start : p.end], p.text) for p in bpe.pieces(text)]
    assert shown[0] == ("the", "▁the")
    assert ("漢", "<0xE6>") in shown
    assert ("▁", "<0xE2>") in shown
    assert shown.count(("▁", "<0x81>")) == 1


@pytest.mark.parametrize("tokeniser", LEARNED, ids=["bpe", "unigram"])
def test_a_line_of_a_million_characters_comes_back(tokeniser):
    for line in ("x" * 1_000_000, "the cat " * 20_000, "\x00漢" * 30_000):
        assert tokeniser.decode(tokeniser.encode(line)) == line


def test_subwords_are_shorter_than_characters_on_the_text_they_know():
    for tokeniser in LEARNED:
        assert isinstance(tokeniser, Subwords)
        assert sum(len(tokeniser.encode(line)) for line in LINES) < 0.8 * sum(map(len, LINES))
