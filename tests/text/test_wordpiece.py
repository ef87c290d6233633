"""WordPiece gives the ids, the places and the decoded text that the published code gives."""

import random
import unicodedata

import pytest
from published_examples import LINES, everywhere, theirs, wordpiece, write_wordpiece

from regard.text import wordpiece as implementation
from regard.text.cleaning import Cleaning, chunks, decompose, words
from regard.text.published import read_wordpiece
from regard.text.special import BOS, EOS, PAD, UNK
from regard.text.wordpiece import longest_match

SETTINGS = [(True, None, True), (False, None, True), (True, False, False), (False, True, True)]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def pair(request, tmp_path_factory):
    return read_wordpiece(write_wordpiece(tmp_path_factory.mktemp("bert"), *request.param)), wordpiece(*request.param)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return read_wordpiece(write_wordpiece(tmp_path_factory.mktemp("bert")))


def test_ids_places_and_decoded_text_are_those_of_the_published_code(pair):
    ours, reference = pair

    def law(text):
        expected, pieces = reference.encode(text), ours.pieces(text)
        assert theirs(ours, ours.encode(text)) == expected.ids
        assert [piece.id for piece in pieces] == ours.encode(text)
        assert [(piece.start, piece.end) for piece in pieces] == expected.offsets
        assert ours.decode(ours.encode(text)) == reference.decode(expected.ids, skip_special_tokens=True)

    everywhere(law)


def test_any_ids_decode_as_the_published_code_decodes_them(pair):
    ours, reference = pair
    rng = random.Random(5)
    for _ in range(300):
        ids = [rng.randrange(len(ours)) for _ in range(rng.randint(0, 6))]
        assert ours.decode(ids) == reference.decode(theirs(ours, ids), skip_special_tokens=True)


def test_a_piece_points_to_the_characters_that_it_stands_for(ours):
    """Cleaned again on its own, what a piece points to is the piece, or is more: a character that came apart."""

    def law(text):
        for piece in ours.pieces(text):
            if piece.id != UNK:
                cleaned = words(text[piece.start : piece.end], Cleaning(True, True, True))
                found, own = "".join(c for word in cleaned for c, _ in word), piece.text.removeprefix("##")
                assert found == own or (own in found and len(unicodedata.normalize("NFC", found)) < len(found))

    everywhere(law)


def test_marks_that_change_places_still_point_to_where_they_were():
    """U+302E (kept) comes before U+302A (stripped); in canonical order it is the second: the published code says 1."""
    assert words("\u302e\u302ax", Cleaning(False, True, False)) == [[("\u302e", 0), ("x", 2)]]


def test_decomposing_with_places_is_normalisation_form_d():
    def law(text):
        text += "\u302e\u302a\u0323\u0308\u0f71\u0f72"
        assert "".join(c for c, _ in decompose(zip(text, range(len(text)), strict=True))) == unicodedata.normalize(
            "NFD", text
        )

    everywhere(law)


def test_pieces_by_hand():
    ids = {"un": 5, "##aff": 6, "##able": 7, "##a": 8, "unaffab": 9}
    assert longest_match("unaffable", ids, 7) == [(UNK, 0, 9)]  # greedy: unaffab, then nothing goes on with le
    del ids["unaffab"]
    assert longest_match("unaffable", ids, 6) == [(5, 0, 2), (6, 2, 5), (7, 5, 9)]
    assert longest_match("unaffablex", ids, 6) == [(UNK, 0, 10)]
    assert longest_match("x" * 101, {"x": 4, "##x": 5}, 3) == [(UNK, 0, 101)]
    assert longest_match("x" * 100, {"x": 4, "##x": 5}, 3) == [(4, 0, 1), *((5, i, i + 1) for i in range(1, 100))]


def test_chunks_by_hand():
    assert list(chunks(" a\x85b\tc\u3000")) == [(1, "a\x85b"), (5, "c")]


def test_special_ids_are_where_every_model_has_them_and_the_mask_is_last(ours):
    reference = wordpiece()
    for id, name in ((PAD, "[PAD]"), (UNK, "[UNK]"), (BOS, "[CLS]"), (EOS, "[SEP]"), (len(ours) - 1, "[MASK]")):
        assert ours.order[id] == reference.token_to_id(name)
    assert sorted(ours.order) == list(range(reference.get_vocab_size()))


def test_a_mask_in_a_text_is_the_mask_and_every_other_special_name_is_text(ours):
    pieces = ours.pieces("the [MASK] sat [CLS]")
    assert [(piece.start, piece.end) for piece in pieces if piece.id == len(ours) - 1] == [(4, 10)]
    assert ours.name(len(ours) - 1) == "[MASK]"
    assert BOS not in ours.encode("the [MASK] sat [CLS]")
    assert ours.decode(ours.encode("the [MASK] sat")) == "the sat"


def test_half_characters_are_cleaned_away(ours):
    assert ours.encode("t\ud800he") == ours.encode("the")


def test_a_stretch_is_matched_once_however_often_it_comes(tmp_path, monkeypatch):
    matched = []
    fresh = read_wordpiece(write_wordpiece(tmp_path))

    def counted(word, ids, longest):
        matched.append(word)
        return longest_match(word, ids, longest)

    monkeypatch.setattr(implementation, "longest_match", counted)
    stretches = LINES[0].split()
    fresh.encode(" ".join(random.Random(1).choices(stretches, k=10_000)))
    assert len(matched) < 3 * len(set(stretches))


def test_a_long_stretch_is_encoded_but_not_remembered(ours):
    text = "cat," * 100
    before = ours._remembered.cache_info().currsize
    assert ours.encode(text) == 100 * ours.encode("cat,")
    assert ours._remembered.cache_info().currsize <= before + 1


def test_sampling_is_encoding(ours):
    for text in LINES:
        assert ours.sample(text, 0.5, random.Random(1)) == ours.encode(text)
