"""Pairs to token ids: order kept, long ones left out and counted."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.data.examples import encode, lengths
from regard.data.pairs import Pair
from regard.text.tokeniser import Piece


class CodePoints:
    """One token per character: its code point."""

    def __len__(self) -> int:
        return 0x110000

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:  # noqa: ARG002
        return self.encode(text)

    def pieces(self, text: str) -> list[Piece]:
        return [Piece(ord(letter), letter, i, i + 1) for i, letter in enumerate(text)]

    def name(self, id: int) -> str:
        return chr(id)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def save(self, folder: Path, stem: str) -> None:
        raise NotImplementedError


def test_decoding_the_examples_gives_the_pairs_in_order():
    tokeniser, pairs = CodePoints(), [Pair("ab", "漢字🙂"), Pair("", "x"), Pair("cde", "")]
    examples, kept = encode(pairs, tokeniser, tokeniser, max_tokens=10)
    assert [Pair(tokeniser.decode(e.source), tokeniser.decode(e.target)) for e in examples] == pairs
    assert kept == pairs
    assert examples[0].source.dtype == np.int32


def test_a_side_with_its_end_token_may_fill_the_limit_but_not_pass_it():
    pairs = [Pair("abc", "a"), Pair("abcd", "a"), Pair("a", "abc"), Pair("a", "abcd")]
    examples, kept = encode(iter(pairs), CodePoints(), CodePoints(), max_tokens=4)
    assert [(len(e.source), len(e.target)) for e in examples] == [(3, 1), (1, 3)]
    assert kept == [pairs[0], pairs[2]]


def test_lengths_count_the_end_token():
    examples, _ = encode([Pair("ab", "abc"), Pair("", "a")], CodePoints(), CodePoints(), max_tokens=9)
    assert lengths(examples).tolist() == [[3, 4], [1, 2]]
    assert lengths([]).shape == (0, 2)
