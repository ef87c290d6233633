"""Every token points to the characters it stands for and to the words these are in, whoever cut the text."""

import random
from functools import cache

import pytest
from hypothesis import given as forall
from hypothesis import settings
from hypothesis import strategies as st

from regard.explaining.explanation import Token
from regard.explaining.sides import given, separates, special, spelled, words_in, written
from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import BOS, EOS
from regard.text.symbols import Symbols

LINES = ["der hund und die katze.", "ein mann fährt rad!", "日本語 です 🙂"] * 9
KINDS = ("bpe", "unigram", "characters", "bytes")
TEXTS = ["der mann und die katze.", "fährt  rad 🙂!", " 日本語です", "x", "hund "]


@cache
def learned(kind):
    return learn(LINES, TextOptions(kind=kind), 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_was_written_is_traced_as_what_was_read(kind, text):
    tokeniser = learned(kind)
    pieces = tokeniser.pieces(text)
    ids = [piece.id for piece in pieces]
    if tokeniser.decode(ids) == text:  # no character was unknown
        assert spelled(tokeniser, ids, text) == pieces
        assert written(tokeniser, ids, (EOS,)) == given(tokeniser, text, after=(EOS,))


def test_another_spelling_of_a_text_points_to_its_own_characters():
    tokeniser, text = learned("bpe"), "der hund und die katze."
    ids = tokeniser.sample(text, 0.9, random.Random(1))
    assert ids != tokeniser.encode(text)
    pieces = spelled(tokeniser, ids, tokeniser.decode(ids))
    assert [piece.id for piece in pieces] == ids
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    for piece in pieces[1:]:
        assert piece.text.replace("▁", " ") == text[piece.start : piece.end]


@pytest.mark.parametrize("kind", KINDS)
@settings(derandomize=True, deadline=None, max_examples=40)
@forall(text=st.text(max_size=14))
def test_tokens_cover_every_character_and_every_word(kind, text):
    side = given(learned(kind), text)
    covered = {place for token in side.tokens for place in range(token.start, token.end)}
    assert covered == set(range(len(text)))
    assert {word for token in side.tokens for word in token.words} == set(range(len(side.words)))
    for token in side.tokens:
        for place in range(token.start, token.end):
            holders = {i for i, word in enumerate(side.words) if word.start <= place < word.end}
            assert holders <= set(token.words)


@forall(text=st.text(max_size=20))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_words_are_the_text_without_its_white_space(text):
    words = words_in(text)
    assert [word.text for word in words] == text.split()
    assert all(text[word.start : word.end] == word.text for word in words)


def test_half_a_character_points_to_all_of_it():
    ids = Bytes().encode("aé🙂")
    spans = [(piece.start, piece.end) for piece in spelled(Bytes(), ids, "aé🙂")]
    assert spans == [(0, 1), (1, 2), (1, 2), (2, 3), (2, 3), (2, 3), (2, 3)]


def test_an_output_that_ends_within_a_character_stays_inside_its_text():
    ids = Bytes().encode("a🙂")[:-1]
    side = written(Bytes(), ids)
    assert side.text == "a\N{REPLACEMENT CHARACTER}"
    assert [(token.start, token.end) for token in side.tokens][:2] == [(0, 1), (1, 2)]


def test_symbols_stand_between_spaces():
    side = given(Symbols(["(S", "XX", ")S"]), "(S  XX )S")
    assert [(token.text, token.start, token.end, token.words) for token in side.tokens] == [
        ("(S", 0, 2, (0,)),
        ("XX", 4, 6, (1,)),
        (")S", 7, 9, (2,)),
    ]


def test_start_and_end_stand_beside_the_text_and_in_no_word():
    side = given(Characters(list("ab")), "ab", before=(BOS,), after=(EOS,))
    assert [(token.text, token.start, token.end, token.words) for token in side.tokens] == [
        ("<s>", 0, 0, ()),
        ("a", 0, 1, (0,)),
        ("b", 1, 2, (0,)),
        ("</s>", 2, 2, ()),
    ]


@pytest.mark.parametrize(
    ("text", "answer"), [(".", True), ("▁«", True), ("...", True), ("a.", False), ("▁", False), ("+", False)]
)
def test_separators_are_punctuation_start_and_end(text, answer):
    assert separates(Token(id=9, text=text, start=0, end=1, words=())) == answer
    assert separates(special(EOS, 3))
    assert separates(special(BOS, 0))
    assert not separates(special(1, 0))  # an unknown character may be anything
