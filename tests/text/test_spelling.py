"""A phrase can be written with a space before it or onto what is there, by every tokeniser that knows it."""

import re

import pytest

from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import NAMES
from regard.text.spelling import Speller, can_read
from regard.text.symbols import Symbols

LINES = ["the cat sat on the mat", "the (dog) sat on the cat", "a cat, a {dog} and the mat 50%"]
KINDS = {
    "bpe": learn(LINES, TextOptions(kind="bpe", size=310), seed=1),
    "unigram": learn(LINES, TextOptions(kind="unigram"), seed=1),
    "known letters only": learn(LINES, TextOptions(kind="bpe", byte_fallback=False), seed=1),
    "bytes": Bytes(),
    "characters": Characters(sorted({c for line in LINES for c in line})),
}


@pytest.fixture(params=KINDS, scope="module")
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def speller(kind):
    return Speller(KINDS[kind])


@pytest.mark.parametrize("phrase", ["cat", "the cat", "{dog}", "50%", "tattoo", "(a)"])
def test_every_spelling_writes_the_phrase_with_a_space_or_without(kind, speller, phrase):
    tokeniser, found = KINDS[kind], speller.spellings(phrase)
    before = tokeniser.encode("the mat")
    written = [tokeniser.decode([*before, *ids]).removeprefix("the mat") for ids in found]
    assert sorted(written) == sorted({" " + phrase, phrase} & set(written))
    assert f" {phrase}" in written  # the form that can follow any word
    assert len(written) == len(set(written)) <= 2


def test_what_the_vocabulary_lacks_has_no_spelling(kind, speller):
    known = kind in ("bpe", "unigram", "bytes")
    assert bool(speller.spellings("Ж→")) is known
    assert can_read(KINDS[kind], "Ж→") is known
    assert can_read(KINDS[kind], "the {dog}")


def test_tokens_that_go_on_with_a_word_and_tokens_that_can_be_gone_on_with(kind, speller):
    tokeniser = KINDS[kind]
    assert len(speller.begins) == len(speller.ends) == len(tokeniser)
    assert not any(speller.begins[: len(NAMES)] + speller.ends[: len(NAMES)])
    spaced = next(
        ids for ids in speller.spellings("cat") if tokeniser.decode([*tokeniser.encode("a"), *ids]) == "a cat"
    )
    assert not speller.begins[spaced[0]]
    assert speller.ends[spaced[-1]]
    percent = speller.spellings("50%")[0]
    assert not speller.ends[percent[-1]]
    for id in range(len(NAMES), len(tokeniser)):
        said = tokeniser.decode([*tokeniser.encode("a"), id])[1:]
        if "\ufffd" not in said and said.isascii():
            assert speller.begins[id] is bool(re.match(r"\w", said))
            assert speller.ends[id] is bool(re.search(r"\w\Z", said))


def test_symbols_stand_apart_by_themselves():
    symbols = Symbols(["XX", "(NP", ")NP"])
    assert Speller(symbols).spellings("(NP XX") == [(5, 4)]
    assert not any(Speller(symbols).begins)
