"""BPE-dropout and its unigram counterpart: what is withheld, how often, and that nothing else decides."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from regard.text import sampling
from regard.text.learn import learn
from regard.text.load import load
from regard.text.options import TextOptions
from regard.text.sampling import Inventory, Lattice, Merges

WORDS = ["the", "other", "mother", "then", "bathes", "with", "this", "brother", "whether", "gather", "thither"]
LINES = [" ".join(random.Random(i).choices(WORDS, k=12)) for i in range(60)]
LEARNED = {kind: learn(LINES, TextOptions(kind=kind), seed=1) for kind in ("bpe", "unigram")}
TEXTS = [*LINES[:10], " the  mother ", "unknown漢▁words", "themother" * 12, "漢字" * 30]


class Fixed(random.Random):
    """A generator that always says the same."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def random(self):
        return self.value


@pytest.fixture(params=LEARNED)
def tokeniser(request):
    return LEARNED[request.param]


def test_sampling_with_nothing_withheld_is_encoding(tokeniser):
    """Our merges and our Viterbi search against SentencePiece's own."""
    for text in TEXTS:
        assert tokeniser.sample(text, 0.5, Fixed(0.999)) == tokeniser.encode(text)


def test_dropout_zero_is_encoding_and_draws_nothing(tokeniser):
    rng = random.Random(4)
    state = rng.getstate()
    for text in TEXTS:
        assert tokeniser.sample(text, 0.0, rng) == tokeniser.encode(text)
    assert rng.getstate() == state


def test_sampling_with_everything_withheld_leaves_characters(tokeniser):
    text = "the mother"
    assert [tokeniser.name(id) for id in tokeniser.sample(text, 0.5, Fixed(0.0))] == list("▁the▁mother")


def test_a_sample_depends_on_text_dropout_and_generator_only(tokeniser, monkeypatch, tmp_path):
    def draw(tokeniser, seed=0):
        return [tokeniser.sample(text, 0.3, random.Random(seed + place)) for place, text in enumerate(TEXTS)]

    first = draw(tokeniser)
    assert draw(tokeniser) == first
    assert draw(tokeniser, seed=100) != first
    tokeniser.save(tmp_path, "twin")
    monkeypatch.setattr(sampling, "REMEMBERED", 2)
    assert draw(load(tmp_path, "twin")) == first  # a twin that forgets every other word


def test_more_dropout_makes_more_pieces(tokeniser):
    lengths = [
        sum(len(tokeniser.sample(line, p, random.Random(place))) for place, line in enumerate(LINES))
        for p in (0.0, 0.1, 0.4, 0.9)
    ]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) == 4


def frequencies(sampler, word, dropout, draws=2000):
    rng = random.Random(11)
    found = Counter(tuple(sampler.draw(word, dropout, rng)) for _ in range(draws))
    return {ids: count / draws for ids, count in found.items()}


def close(found, expected):
    assert found.keys() == expected.keys()
    assert all(abs(found[key] - expected[key]) < 0.045 for key in expected)  # 4 standard deviations of 2000 draws


A, B, C, AB, BC, ABC = range(4, 10)
IDS = dict(zip(["a", "b", "c", "ab", "bc", "abc"], (A, B, C, AB, BC, ABC), strict=True))


def test_merges_are_withheld_as_often_as_the_paper_says():
    """ab is tried before bc; abc comes from either: worked out by hand."""
    merges = Merges(Inventory(IDS, {"ab": 0.0, "abc": -1.0, "bc": -2.0, "a": -3.0, "b": -4.0, "c": -5.0}, []))
    p = 0.3
    expected = {(ABC,): (1 - p) ** 2 * (1 + p), (AB, C): (1 - p) * p, (A, BC): p * (1 - p) * p, (A, B, C): p * p}
    assert sum(expected.values()) == pytest.approx(1.0)
    close(frequencies(merges, "abc", p), expected)


def test_merges_agree_with_the_algorithm_written_out():
    """All merges drawn afresh at every step, as in the paper, on a word that has equal pairs."""
    scores = {"an": 0.0, "ana": -1.0, "na": -2.0, "nan": -3.0, "ban": -4.0, "anana": -5.0, "bana": -6.0}
    ids = {piece: id for id, piece in enumerate([*"ban", *scores], 4)}
    p = 0.35

    def written_out(word, rng):
        symbols = list(word)
        while True:
            pairs = [(-scores[x + y], i) for i, (x, y) in enumerate(pairwise(symbols)) if x + y in scores]
            kept = [pair for pair in pairs if rng.random() >= p]
            if not kept:
                return tuple(ids[symbol] for symbol in symbols)
            place = min(kept)[1]
            symbols[place : place + 2] = ["".join(symbols[place : place + 2])]

    rng = random.Random(2)
    found = Counter(written_out("banana", rng) for _ in range(2000))
    ours = frequencies(Merges(Inventory(ids, scores, [])), "banana", p)
    for key in found.keys() | ours.keys():
        assert abs(found[key] / 2000 - ours.get(key, 0.0)) < 0.055


def test_pieces_of_a_lattice_are_withheld_independently():
    """abc beats ab+c beats a+bc beats a+b+c: each is taken when all better ones miss a piece."""
    scores = {"abc": -1.0, "ab": -1.0, "bc": -2.0, "a": -3.0, "b": -4.0, "c": -3.0}
    p = 0.4
    expected = {(ABC,): 1 - p, (AB, C): p * (1 - p), (A, BC): p * p * (1 - p), (A, B, C): p**3}
    close(frequencies(Lattice(Inventory(IDS, scores, [])), "abc", p), expected)


def test_a_character_without_a_piece_is_spelled_in_bytes_or_unknown():
    scores = {piece: -float(id) for piece, id in IDS.items()}
    for kind in (Merges, Lattice):
        assert list(kind(Inventory(IDS, scores, range(100, 356))).draw("aé", 0.1, Fixed(0.5))) == [
            A,
            100 + 0xC3,
            100 + 0xA9,
        ]
        assert list(kind(Inventory(IDS, scores, [])).draw("aé", 0.1, Fixed(0.5))) == [A, 1]
