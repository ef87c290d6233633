"""Published SentencePiece models: T5 with its sentinels, Marian with two sides over one vocabulary."""

import random

import pytest
from published_examples import (
    LINES,
    drawn,
    everywhere,
    names,
    processor,
    sentencepiece,
    theirs,
    write_marian,
    write_t5,
)

from regard.text.published import read_marian, read_t5
from regard.text.special import BOS, EOS, NAMES, PAD, UNK

BYTES = {"byte_fallback": True, "size": 370}


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return read_t5(write_t5(tmp_path_factory.mktemp("t5")))


@pytest.fixture(scope="module")
def t5_with_bytes(tmp_path_factory):
    return read_t5(write_t5(tmp_path_factory.mktemp("t5"), **BYTES))


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = write_marian(tmp_path_factory.mktemp("marian"))
    return folder, *read_marian(folder)


def test_special_ids_of_t5_are_where_every_model_has_them_and_sentinels_rise_to_the_end(t5):
    pieces = len(names(sentencepiece()))
    assert [t5.order[id] for id in (PAD, UNK, BOS, EOS)] == [-1, 2, 0, 1]
    assert [t5.order[id] for id in t5.sentinels] == [pieces + 99 - number for number in range(100)]
    assert [t5.name(id) for id in t5.sentinels] == [f"<extra_id_{number}>" for number in range(100)]
    assert t5.sentinels[-1] == len(t5) - 1
    assert sorted(t5.order) == [-1, *range(pieces + 100)]


@pytest.mark.parametrize("more", [{}, BYTES], ids=str)
def test_ids_of_t5_are_those_of_sentencepiece(more, t5, t5_with_bytes):
    ours, reference = t5_with_bytes if more else t5, processor(sentencepiece(**more))

    def law(text):
        assert theirs(ours, ours.encode(text)) == reference.encode(text)
        assert [piece.id for piece in ours.pieces(text)] == ours.encode(text)

    everywhere(law)


def test_decoding_with_bytes_gives_the_normalised_text_back(t5_with_bytes):
    """SentencePiece normalises by NFKC and to one space between words; what is a control character is gone."""
    reference = processor(sentencepiece(**BYTES))

    def law(text):
        ids = t5_with_bytes.encode(text)
        normal = reference.normalize(text).replace("▁", " ").removeprefix(" ")
        assert t5_with_bytes.decode(ids) == normal == reference.decode(theirs(t5_with_bytes, ids))

    everywhere(law)


def test_a_piece_points_to_the_characters_that_it_stands_for(t5):
    """Normalised on its own, what a piece points to holds the piece; only the first space is not in the text."""
    reference = processor(sentencepiece())

    def law(text):
        for place, piece in enumerate(t5.pieces(text)):
            pointed = text[piece.start : piece.end]
            assert pointed or (place == 0 and piece.text == "▁")
            if piece.id != UNK:
                assert piece.text.removeprefix("▁") in reference.normalize(pointed)

    everywhere(law)


def test_pieces_of_one_character_all_point_to_it(t5, t5_with_bytes):
    """½ becomes 1⁄2 and ﬁ becomes fi."""
    assert [(p.text, p.start, p.end) for p in t5.pieces("½ ﬁ")] == [
        *(("▁", 0, 0), ("1", 0, 1), ("<unk>", 0, 1), ("2", 0, 1), ("▁", 1, 2), ("f", 2, 3), ("i", 2, 3))
    ]
    assert [(p.start, p.end) for p in t5_with_bytes.pieces("☃")][1:] == [(0, 1)] * 3


def test_sentinels_in_a_text_are_sentinels_and_special_names_are_text(t5):
    text = "the <extra_id_3> sat<extra_id_99><extra_id_0> on"
    third, last, first = (t5.sentinels[number] for number in (3, 99, 0))
    assert t5.encode(text) == [*t5.encode("the"), third, *t5.encode("sat"), last, first, *t5.encode("on")]
    assert [text[piece.start : piece.end] for piece in t5.pieces(text) if piece.id in t5.sentinels] == [
        *("<extra_id_3>", "<extra_id_99>", "<extra_id_0>")
    ]
    assert not set(t5.encode("<extra_id_100> </s> <pad>")) & {PAD, BOS, EOS, *t5.sentinels}
    assert t5.decode(t5.encode(text)) == "the sat on"


def test_special_ids_unknown_ones_and_sentinels_are_not_decoded(t5, t5_with_bytes):
    ids = t5.encode("the cat")
    assert t5.decode([BOS, *ids, UNK, t5.sentinels[4], EOS, PAD]) == "the cat"
    spelled = t5_with_bytes.encode("☃")
    assert t5_with_bytes.decode(spelled) == "☃"
    assert t5_with_bytes.decode(spelled[:-1]) == "\ufffd"


def test_half_characters_become_replacement_characters(t5_with_bytes):
    """Which the published normalisation turns into a space."""
    assert t5_with_bytes.encode("a\ud800b") == t5_with_bytes.encode("a\ufffdb")
    assert t5_with_bytes.pieces("a\ud800b") == t5_with_bytes.pieces("a\ufffdb")


def test_both_sides_of_marian_share_one_order(marian):
    _, source, target = marian
    assert source.order == target.order
    assert [source.order[id] for id in (PAD, UNK, EOS)] == [-1, 1, 0]
    assert source.order[BOS] == len(source) - 2
    assert sorted(source.order) == [-1, *range(len(source) - 1)]
    assert [source.name(id) for id in range(4)] == list(NAMES)


def test_each_side_of_marian_cuts_with_its_own_model_and_numbers_by_the_vocabulary(marian):
    """A piece that the side's own model does not know has an id where the vocabulary has its name."""
    folder, *sides = marian
    for side, file in zip(sides, ("source.spm", "target.spm"), strict=True):
        reference = processor((folder / file).read_bytes())
        numbered = {name: id for id, name in enumerate(map(side.name, range(len(side)))) if id >= len(NAMES)}
        for text in [*LINES, *drawn(200)]:
            pieces = reference.encode(text, out_type=str)
            assert side.encode(text) == [numbered.get(piece, UNK) for piece in pieces]
            assert [piece.id for piece in side.pieces(text)] == side.encode(text)
    assert sides[0].encode("é") != sides[1].encode("x")
    assert UNK not in sides[0].encode("é")[1:]


def test_a_language_code_before_a_source_text_is_one_id(marian):
    _, source, target = marian
    code, *rest = source.encode(">>fra<< the cat")
    assert source.name(code) == ">>fra<<"
    assert rest == source.encode("the cat")
    assert code not in target.encode(">>fra<< the cat")


def test_sampling_is_encoding(t5):
    for text in LINES:
        assert t5.sample(text, 0.5, random.Random(1)) == t5.encode(text)
