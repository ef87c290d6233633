"""Phrases that an output must contain are in it, whatever the decoder; where none are asked for, nothing changes."""

from itertools import product

import pytest
from families import MODELS, build

from regard.decoding.bulk import score_pairs, translate
from regard.decoding.constrained import translate_with
from regard.decoding.options import SearchOptions
from regard.decoding.phrases import Phrase, Seams

VOCAB = 7  # 4, 5 and 6 are words
SEAMS = Seams([False] * VOCAB, [False] * VOCAB)
SOURCES = [[4, 8, 5], [7], [6, 6]]


def phrase(*tokens, times=1):
    return Phrase((tokens,), times)


def count(tokens, spelling):
    return sum(tokens[i : i + len(spelling)] == spelling for i in range(len(tokens)))


@pytest.fixture(params=MODELS, scope="module")
def model(request):
    return build(request.param, VOCAB)


def test_without_phrases_the_search_is_the_ordinary_one(model):
    options = SearchOptions(beam=3, n_best=2, cap=6)
    ours = translate_with(model, SOURCES, options, [[], [], []], SEAMS)
    theirs = translate(model, SOURCES, options)
    assert [[h.tokens for h in found] for found in ours] == [[h.tokens for h in found] for found in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert [h.score for h in one] == pytest.approx([h.score for h in other])


def test_every_phrase_is_in_every_output_as_often_as_asked(model):
    asked = [[phrase(4, 6, 5), phrase(6, 6)], [phrase(6, times=2)], []]
    options = SearchOptions(beam=2, n_best=2, cap=8)
    found = translate_with(model, SOURCES, options, asked, SEAMS)
    for hypotheses, wanted in zip(found[:2], asked[:2], strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert hypothesis.finished
            assert len(hypothesis.tokens) < options.cap
            assert [count(hypothesis.tokens, one.spellings[0]) for one in wanted] == [one.times for one in wanted]
    alone = translate_with(model, SOURCES[:1], options, asked[:1], SEAMS)
    assert [h.tokens for h in alone[0]] == [h.tokens for h in found[0]]  # company changes nothing


def test_where_only_the_phrases_fit_they_are_all_there_is(model):
    options = SearchOptions(beam=2, n_best=2, cap=6)
    for hypothesis in translate_with(model, SOURCES[:1], options, [[phrase(4, 5, 6), phrase(5, 4)]], SEAMS)[0]:
        assert hypothesis.tokens in [(4, 5, 6, 5, 4), (5, 4, 4, 5, 6)]


def test_a_wide_beam_finds_the_likeliest_of_all_outputs_with_the_phrase(model):
    options = SearchOptions(beam=64, n_best=3, length_penalty=0.7, cap=4)
    found = translate_with(model, SOURCES[:1], options, [[phrase(6, 4)]], SEAMS)[0]
    bodies = [body for size in range(4) for body in product((4, 5, 6), repeat=size) if count(body, (6, 4)) == 1]
    totals = [sum(steps) for steps in score_pairs(model, SOURCES[:1] * len(bodies), bodies)]
    scores = {body: total / (len(body) + 1) ** 0.7 for body, total in zip(bodies, totals, strict=True)}
    best = sorted(bodies, key=lambda body: -scores[body])[:3]
    assert [h.tokens for h in found] == best
    assert [h.score for h in found] == pytest.approx([scores[body] for body in best])
