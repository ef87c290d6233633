"""Many sentences at once: the answers of each alone, in the order they came."""

import pytest
import torch

from regard.decoding.bulk import draw, generator_for, pad, score_pairs, translate
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.recipe.build import build
from regard.recipe.models import RecurrentOptions, TransformerOptions
from regard.text.special import BOS, EOS, PAD, UNK

MODELS = {
    "transformer": TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1),
    "recurrent": RecurrentOptions(width=6, embedding=5),
}
SOURCES = [[5, 6], [7, 8, 9, 10, 4], [6], [], [9, 9, 4], [4, 5]]
SEARCH = SearchOptions(beam=3, n_best=2, max_ratio=1.0, max_extra=3)


@pytest.fixture(params=MODELS)
def model(request):
    return build(MODELS[request.param], 11, 11, shared=True, seed=2).double().eval()


def close(found, expected):
    assert [[h.tokens for h in hypotheses] for hypotheses in found] == [
        [h.tokens for h in hypotheses] for hypotheses in expected
    ]
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.log_probability for h in ours] == pytest.approx([h.log_probability for h in theirs])


@pytest.mark.parametrize("batch_tokens", [1, 20, 4096])
def test_sentences_are_translated_as_if_each_were_alone(model, batch_tokens):
    found = translate(model, SOURCES, SEARCH, batch_tokens=batch_tokens)
    close(found, [translate(model, [source], SEARCH)[0] for source in SOURCES])
    assert len({hypotheses[0].log_probability for hypotheses in found}) > 1


def test_prefixes_keep_to_their_sentences(model):
    prefixes = [[4], [5, 6], [], [7], [8], [9, 10]]
    found = translate(model, SOURCES, SEARCH, prefixes=prefixes, batch_tokens=12)
    for hypotheses, prefix in zip(found, prefixes, strict=True):
        assert all(list(h.tokens[: len(prefix)]) == prefix for h in hypotheses)


def test_no_output_is_longer_than_its_source_allows_or_holds_a_special_token(model):
    found = translate(model, SOURCES, SEARCH) + draw(model, SOURCES, SamplingOptions(samples=4), SEARCH, seed=1)
    for source, hypotheses in zip(SOURCES * 2, found, strict=True):
        for hypothesis in hypotheses:
            assert len(hypothesis.token_log_probs) <= len(source) + 1 + 3  # ratio 1, the end token, extra 3
            assert not {PAD, UNK, BOS, EOS} & set(hypothesis.tokens)


def test_a_draw_depends_on_the_seed_and_its_own_sentence(model):
    options = SamplingOptions(samples=3)
    found = draw(model, SOURCES, options, SEARCH, seed=1)
    backwards = draw(model, SOURCES[::-1], options, SEARCH, seed=1)
    assert found == backwards[::-1]
    assert found[1:2] == draw(model, SOURCES[1:2], options, SEARCH, seed=1)
    assert found != draw(model, SOURCES, options, SEARCH, seed=2)
    assert generator_for([5, 6], 1).initial_seed() != generator_for([6, 5], 1).initial_seed()


@pytest.mark.parametrize("batch_tokens", [1, 12, 4096])
def test_scores_are_the_models_own_log_probabilities(model, batch_tokens):
    targets = [[4], [5, 6, 7, 8, 9, 10], [], [6, 6], [7], [10, 9, 8]]
    found = score_pairs(model, SOURCES, targets, batch_tokens=batch_tokens)
    for source, target, scores in zip(SOURCES, targets, found, strict=True):
        tokens = torch.tensor([[*source, EOS]])
        logits = model(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.tensor([[BOS, *target]]))
        wanted = torch.tensor([*target, EOS])
        expected = logits[0].log_softmax(-1)[torch.arange(len(wanted)), wanted]
        assert scores == pytest.approx(expected.tolist())


def test_what_search_reports_is_what_scoring_says(model):
    best = [hypotheses[0] for hypotheses in translate(model, SOURCES, SEARCH)]
    scores = score_pairs(model, SOURCES, [hypothesis.tokens for hypothesis in best])
    for hypothesis, score in zip(best, scores, strict=True):
        predicted = len(hypothesis.tokens) + hypothesis.finished  # one that was cut did not say that it ends
        assert score[:predicted] == pytest.approx(hypothesis.token_log_probs)


def test_nothing_in_nothing_out(model):
    assert (
        translate(model, [], SEARCH)
        == draw(model, [], SamplingOptions(), SEARCH, 1)
        == score_pairs(model, [], [])
        == []
    )


def test_padding_fills_on_the_right():
    tokens, mask = pad([[5], [6, 7, 8], [9, 9]])
    assert tokens.tolist() == [[5, PAD, PAD], [6, 7, 8], [9, 9, PAD]]
    assert mask.tolist() == [[True, False, False], [True] * 3, [True, True, False]]
