"""Byte-level BPE loses nothing, and gives the ids and places that the published code gives."""

import random
import re
import unicodedata
from itertools import pairwise

import pytest
from published_examples import AWKWARD, END, LINES, byte_level, everywhere, theirs, write_byte_level

from regard.text import byte_level as implementation
from regard.text.byte_level import ALPHABET, merge, split_words
from regard.text.published import read_byte_level
from regard.text.special import EOS, NAMES


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return read_byte_level(write_byte_level(tmp_path_factory.mktemp("gpt2")))


def test_decoding_what_was_encoded_gives_the_text_back(ours):
    def law(text):
        assert ours.decode(ours.encode(text)) == text
        assert "".join(split_words(text)) == text

    everywhere(law)


def test_ids_and_places_are_those_of_the_published_code(ours):
    """Exact for every character that Python's Unicode tables know; see below for those that only theirs know."""

    def law(text):
        if any(unicodedata.category(c) == "Cn" for c in text):
            return
        expected, pieces = byte_level().encode(text), ours.pieces(text)
        assert theirs(ours, ours.encode(text)) == expected.ids
        assert [(piece.start, piece.end) for piece in pieces] == expected.offsets
        assert [piece.id for piece in pieces] == ours.encode(text)
        assert [piece.text for piece in pieces] == [ours.name(piece.id) for piece in pieces]

    everywhere(law)


def test_python_tells_letters_and_numbers_apart_as_unicode_does():
    """The pattern asks for \\p{L} and \\p{N}; `isalpha` and \\w answer, for every character there is."""
    letters_and_numbers = [c for c in map(chr, range(0x110000)) if unicodedata.category(c)[0] in "LN"]
    assert re.findall(r"[^\W_]", "".join(map(chr, range(0x110000)))) == letters_and_numbers
    assert all(c.isalpha() == (unicodedata.category(c)[0] == "L") for c in letters_and_numbers)


def test_words_by_hand():
    assert list(split_words("I'll  pay 20€ now_x2b ''s\x1c ")) == [
        *("I", "'ll", " ", " pay", " 20", "€", " now", "_", "x", "2", "b", " ''", "s", "\x1c", " ")
    ]


def test_any_ids_decode_as_the_published_code_decodes_them(ours):
    rng = random.Random(5)
    for _ in range(300):
        ids = [rng.choice([EOS, *range(len(NAMES), len(ours))]) for _ in range(rng.randint(0, 6))]
        assert ours.decode(ids) == byte_level().decode(theirs(ours, ids), skip_special_tokens=True)


def test_half_characters_become_replacement_characters(ours):
    assert ours.decode(ours.encode("a\ud800b")) == "a\ufffdb"
    assert [(piece.start, piece.end) for piece in ours.pieces("\udfffb")] == [(0, 1), (0, 1), (0, 1), (1, 2)]


def test_names_show_spaces_bytes_and_special_ids(ours):
    assert [piece.text for piece in ours.pieces(" the")] == ["▁the"]
    assert [piece.text for piece in ours.pieces("\U00020000")] == ["<0xF0>", "<0xA0>", "<0x80>", "<0x80>"]
    assert [ours.name(id) for id in range(4)] == list(NAMES)


def by_plain_search(symbols, ranks):
    """The definition: do the best merge, the leftmost of equals, until there is none."""
    while True:
        found = [(ranks[pair], place) for place, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not found:
            return symbols
        place = min(found)[1]
        symbols = [*symbols[:place], symbols[place] + symbols[place + 1], *symbols[place + 2 :]]


def test_merging_agrees_with_a_plain_search():
    rng = random.Random(3)
    for _ in range(200):
        known = list("ab")
        ranks = {}
        for _ in range(rng.randint(0, 12)):
            pair = rng.choice(known), rng.choice(known)
            ranks.setdefault(pair, len(ranks))
            known.append("".join(pair))
        symbols = rng.choices("ab", k=rng.randint(0, 30))
        assert merge(symbols, ranks) == by_plain_search(symbols, ranks)


class Counting(dict):
    """Ranks that count how often they are asked."""

    asked = 0

    def __contains__(self, key):
        self.asked += 1
        return super().__contains__(key)


@pytest.mark.parametrize("word", ["ab", "aab"])
def test_a_word_of_twice_the_length_asks_for_twice_the_merges(word):
    asked = []
    for length in (300, 600):
        ranks = Counting({("a", "b"): 0, ("ab", "ab"): 1, ("abab", "abab"): 2, ("a", "a"): 3})
        merge(list(word * length), ranks)
        asked.append(ranks.asked)
    assert asked[1] <= 2.02 * asked[0]


def test_a_word_is_merged_once_however_often_it_comes(ours, tmp_path, monkeypatch):
    merged = []
    fresh = read_byte_level(write_byte_level(tmp_path))
    text = " ".join(random.Random(1).choices(LINES[0].split(), k=10_000))
    expected = ours.encode(text)
    monkeypatch.setattr(implementation, "merge", lambda symbols, ranks: merged.append(1) or merge(symbols, ranks))
    assert fresh.encode(text) == expected
    assert len(merged) == len(set(split_words(text))) < 30


def test_a_long_word_is_encoded_but_not_remembered(ours):
    word = "thecat" * 100
    before = ours._remembered.cache_info().currsize
    assert ours.decode(ours.encode(word)) == word
    assert ours._remembered.cache_info().currsize == before


def test_the_name_of_the_end_in_a_text_is_only_text(ours):
    assert EOS not in ours.encode(f"a{END}b")
    assert ours.order[EOS] == byte_level().token_to_id(END)


def test_a_byte_is_written_as_the_published_table_has_it():
    assert ALPHABET[ord("a")] == "a"
    assert ALPHABET[ord(" ")] == "Ġ"
    assert ALPHABET[ord("\n")] == "Ċ"
    assert len(set(ALPHABET)) == 256


def test_sampling_is_encoding(ours):
    for text in AWKWARD:
        assert ours.sample(text, 0.5, random.Random(1)) == ours.encode(text)
