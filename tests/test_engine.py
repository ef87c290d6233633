"""The engine is what a model says, whoever asks."""

import pytest

from regard.data.pairs import Pair
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.engine import LONGEST, Engine, load
from regard.errors import DecodingError, ModelFormatError


@pytest.fixture(scope="module")
def engine(model):
    return load(model)


@pytest.fixture(scope="module")
def other(model):
    return load(model, engine="ctranslate2")


def test_every_engine_keeps_the_protocol(engine, other):
    assert isinstance(engine, Engine)
    assert isinstance(other, Engine)
    assert engine.search == other.search


def test_another_engine_is_another_way_to_the_same_texts(engine, other):
    texts = ["abc de", "", "a", " \t", "edc ba", "a"]
    ours, theirs = engine.translate(texts), other.translate(texts)
    assert [one.text for one in theirs] == [one.text for one in ours]
    assert [one.score for one in theirs] == pytest.approx([one.score for one in ours], abs=1e-4)
    forced = [found.text for found in other.translate(["ab", "", "cd"], prefixes=["C", "A", "DD"])]
    assert [text[:size] for text, size in zip(forced, (1, 0, 2), strict=True)] == ["C", "", "DD"]


def test_another_engine_finds_given_pairs_as_probable(engine, other):
    pairs = [Pair("ab", "AB"), Pair("", ""), Pair("a?b", "A?")]
    ours, theirs = engine.score(pairs), other.score(pairs)
    assert [one.tokens for one in theirs] == [one.tokens for one in ours] == [3, 1, 3]
    expected = [one.log_probability for one in ours]
    assert [one.log_probability for one in theirs] == pytest.approx(expected, abs=1e-3)


def test_an_engine_says_what_it_cannot_do(model, other):
    with pytest.raises(DecodingError, match="use the torch engine"):
        other.sample(["ab"], SamplingOptions(), seed=1)
    with pytest.raises(DecodingError, match="engine 'marian': not known"):
        load(model, engine="marian")


def test_texts_are_translated_as_if_each_were_alone_and_blanks_stay(engine):
    texts = ["abc de", "", "a", " \t", "edc ba", "a"]
    found = engine.translate(texts)
    assert [one.source for one in found] == texts
    assert [one.text for one in found] == [engine.translate([text])[0].text for text in texts]
    assert [one.text for one in found if not one.source.strip()] == ["", ""]
    assert found[2] == found[5]
    assert engine.translate([]) == []


def test_tokens_scores_and_texts_of_a_candidate_agree(engine):
    search = SearchOptions(beam=4, n_best=3, length_penalty=0.5)
    for candidate in engine.translate(["abc de"], search)[0].candidates:
        assert "".join(candidate.tokens).replace("▁", " ") == candidate.text
        assert candidate.score >= candidate.log_probability  # divided by at least one
    best = engine.translate(["abc de"], search)[0]
    assert best.score == best.candidates[0].score == max(one.score for one in best.candidates)


def test_perplexity_is_that_of_the_mean_token(engine):
    one, two = engine.score([Pair("ab", "AB"), Pair("", "")])
    assert one.tokens == 3  # the end token counts
    assert one.perplexity == pytest.approx(2.718281828459045 ** (-one.log_probability / 3))
    assert two.tokens == 1


def test_draws_come_in_the_number_asked_for(engine):
    found = engine.sample(["ab", "", "cd"], SamplingOptions(samples=3), seed=4)
    assert [len(one.candidates) for one in found] == [3, 1, 3]
    assert found == engine.sample(["ab", "", "cd"], SamplingOptions(samples=3), seed=4)


def test_a_prefix_for_each_text(engine):
    found = engine.translate(["ab", "", "cd"], prefixes=["C", "A", "DD"])
    assert [one.text[: len(prefix)] for one, prefix in zip(found, ["C", "", "DD"], strict=True)] == ["C", "", "DD"]
    with pytest.raises(DecodingError, match=r"prefix 'é'"):
        engine.translate(["ab"], prefixes=["é"])


def test_texts_without_end_are_refused(engine):
    with pytest.raises(DecodingError, match=f"{LONGEST + 1} tokens"):
        engine.translate(["a" * (LONGEST + 1)])
    with pytest.raises(DecodingError, match="split it"):
        engine.score([Pair("a" * (LONGEST + 1), "A")])


def test_a_path_may_be_text(model, engine):
    assert load(str(model)).translate(["ab"]) == engine.translate(["ab"])
    with pytest.raises(ModelFormatError, match="no such model directory"):
        load("nowhere")
