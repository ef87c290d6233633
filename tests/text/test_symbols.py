"""A closed set of symbols: each is one id, white space only separates."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.load import load
from regard.text.special import EOS, UNK
from regard.text.symbols import Symbols

TREES = ["(S (NP XX )NP (VP XX )VP )S", "(S (VP XX )VP )S"]
KNOWN = Symbols.learn(TREES)


def test_symbols_are_numbered_by_frequency_then_code_point():
    """XX 3 times; (S, (VP, )S, )VP twice; (NP, )NP once."""
    names = [KNOWN.name(id) for id in range(4, len(KNOWN))]
    assert names == ["XX", "(S", "(VP", ")S", ")VP", "(NP", ")NP"]
    assert KNOWN.encode(TREES[1]) == [5, 6, 4, 8, 7]


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.lists(st.sampled_from([*TREES[0].split(), "(X", "<s>"])), st.sampled_from([" ", "  ", "\t", "\n ", "\u3000"]))
def test_decoding_joins_the_known_symbols_by_one_space(symbols, gap):
    text = gap.join(symbols)
    assert KNOWN.decode(KNOWN.encode(text)) == " ".join(s for s in symbols if s in TREES[0])
    assert [text[piece.start : piece.end] for piece in KNOWN.pieces(text)] == symbols
    assert [piece.id for piece in KNOWN.pieces(text)] == KNOWN.encode(text)


def test_an_unknown_symbol_is_unk_and_special_ids_are_not_decoded():
    assert KNOWN.encode("(S (FRAG )S") == [5, UNK, 7]
    assert KNOWN.decode([5, UNK, 7, EOS]) == "(S )S"
    assert [piece.text for piece in KNOWN.pieces("(FRAG")] == ["<unk>"]


def test_symbols_read_back_are_the_same(tmp_path):
    KNOWN.save(tmp_path, "target")
    after = load(tmp_path, "target")
    assert isinstance(after, Symbols)
    assert len(after) == len(KNOWN)
    for text in [*TREES, "(X a"]:
        assert after.pieces(text) == KNOWN.pieces(text)
        assert after.sample(text, 0.5, random.Random(1)) == KNOWN.encode(text)
