"""Sentences and what is between them: nothing is lost, and each language's stops are known."""

import random
from itertools import pairwise

import pytest

from regard.text.sentences import LONGEST, gap, is_sentence, put_back, split_sentences

ALPHABET = "aB3 .!?…。！「」“”\"'«»()\n\r\t\u00a0\u2028\u0301é日本،؟;,、-\U0001f600 ..  "


def sentences(text, language=None):
    return [piece for piece in split_sentences(text, language) if is_sentence(piece)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("longest", [1, 7, LONGEST])
def test_joined_the_pieces_are_the_text_whatever_it_is(seed, longest):
    rng = random.Random(seed)
    for _ in range(40):
        text = "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(60)))
        text += "".join(chr(rng.choice([rng.randrange(0x250), rng.randrange(0x11000)])) for _ in range(9))
        pieces = split_sentences(text, rng.choice([None, "en", "de-AT", "ja", "xx"]), longest)
        assert "".join(pieces) == text
        for piece in pieces:
            assert piece
            assert piece.isspace() or piece == piece.strip()
            assert piece.isspace() or len(piece) <= longest
        assert not any(one.isspace() and two.isspace() for one, two in pairwise(pieces))
        assert put_back(pieces, [piece for piece in pieces if is_sentence(piece)]) == text


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["Dr. Smith paid $3.50 to J. R. R. Tolkien vs. Mr. Lewis, e.g. in Fig. 3.", "Then he left."]),
        ("en", ['"Stop!" he said.', "(Why?)", "Nobody knew...", "“Really?!”", "Visit www.a.com. now."]),
        ("en", ["He was 25.", "She was No. 1.", "Is that a no.", "Yes."]),
        ("de", ["Am 3. März kam z. B. Hr. Meier bzw. Fr. Dr. Kurz.", "Er blieb.", "»Warum?«", "Nr. 5 lebt!"]),
        ("de", ["Das kostet ca. 5 Mio. Euro, d. h. viel.", "„Zu viel.“", "Ende."]),
        ("fr", ["« Ça va ? »", "M. Dupont et Mme. Blanc sont là !", "C'est l'art. 5.", "Voilà…", "Oui."]),
        ("es", ["¿Qué tal?", "¡Bien!", "El Sr. López y la Dra. Ruiz viven en EE.UU. desde 1990.", "«Sí.»", "Adiós."]),
        ("xx", ["One.", "Two."]),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(language, expected):
    assert sentences(" ".join(expected), language) == expected


def test_japanese_sentences_end_without_a_space_but_not_within_a_quotation():
    expected = ["「はい。そうです。」と彼は言った。", "本当！？", "「うん。」", "「次。」は3．5です。", "終わり"]
    assert sentences("".join(expected), "ja") == expected
    assert sentences("一。二！\n三", "zh") == ["一。", "二！", "三"]


def test_line_breaks_and_indentation_stay_where_they_were():
    text = "  One line\n\tand another. \r\n\r\n- A point.  Two.\n"
    pieces = ["  ", "One line", "\n\t", "and another.", " \r\n\r\n", "- A point.", "  ", "Two.", "\n"]
    assert split_sentences(text, "en") == pieces
    said = [piece.upper() for piece in pieces if is_sentence(piece)]
    assert put_back(pieces, said) == text.upper()
    assert split_sentences("") == []
    assert put_back([], []) == ""


def test_a_long_sentence_is_cut_at_a_comma_else_at_a_space_else_anywhere():
    assert split_sentences("aaa bbb, ccc ddd eee", longest=12) == ["aaa bbb,", " ", "ccc ddd eee"]
    assert split_sentences("aaa bbb ccc ddd", longest=12) == ["aaa bbb ccc", " ", "ddd"]
    assert split_sentences("a" * 25, longest=10) == ["a" * 10, "a" * 10, "a" * 5]
    assert split_sentences("ああ、いいいい", longest=4) == ["ああ、", "いいいい"]
    assert split_sentences("e\u0301" * 4, longest=3) == ["e\u0301", "e\u0301", "e\u0301", "e\u0301"]


def test_sentences_that_touched_get_a_space_only_if_their_translations_need_one():
    pieces = split_sentences("一。二。", "ja")
    assert put_back(pieces, ["One.", "Two."]) == "One. Two."
    assert put_back(pieces, ["1。", "Two."]) == "1。Two."
    assert put_back(split_sentences("一。 二。"), ["One.", "Two."]) == "One. Two."
    assert put_back(["aaa", "bbb"], ["ccc", "ddd"]) == "cccddd"  # cut within a word
    assert (gap("一。", "One.", "Two."), gap("一。", "", "Two."), gap("one.", "One.", "Two.")) == (" ", "", "")
