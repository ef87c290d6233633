"""Models that speak together: the mean of their probabilities, whatever they are made of."""

import pytest
import torch

from regard.decoding.bulk import NEVER, draw, score_pairs, translate, write
from regard.decoding.ensemble import log_mean, together
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.errors import DecodingError
from regard.recipe.build import build
from regard.recipe.inference import for_inference
from regard.recipe.models import ByteNetOptions, RecurrentOptions, TransformerOptions
from regard.text.special import BOS, EOS

VOCAB, LIMIT = 9, 4
OPTIONS = {
    "wide": TransformerOptions(width=12, heads=2, feedforward=20, encoder_layers=1, decoder_layers=2),
    "narrow": TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=2, decoder_layers=1),
    "recurrent": RecurrentOptions(width=6, embedding=5),
    "stretched": ByteNetOptions(width=10, rates=(1, 2), encoder_rounds=1, decoder_rounds=1, stretch=1.7),
}
TEAMS = {
    "two-widths": ("wide", "narrow"),
    "three": ("recurrent", "wide", "narrow"),
    "two-lengths-of-memory": ("stretched", "recurrent"),
}
SOURCES = [[4, 5, 6], [7]]
every_team = pytest.mark.parametrize("team", TEAMS)


def members(team):
    """Models sure enough of themselves that their choices differ."""
    found = [
        build(OPTIONS[k], VOCAB, VOCAB, shared=True, seed=i + 1).double().eval() for i, k in enumerate(TEAMS[team])
    ]
    for model in found:
        for parameter in model.parameters():
            parameter.data *= 1.6
    return found


@torch.no_grad()
def mean_log_probs(models, source, tokens):
    """log of the mean of p(next | tokens), each model asked from the start."""
    row = torch.tensor([[*source, EOS]])
    seen = torch.tensor([[BOS, *tokens]])
    every = [model(row, torch.ones_like(row, dtype=torch.bool), seen)[0, -1].softmax(-1) for model in models]
    return (sum(every) / len(every)).log()


def plain_beam(models, source, width):
    """The definition of beam search with lists, as in the tests of the search itself; length penalty 1."""
    live, finished = [((), 0.0)], []
    for length in range(1, LIMIT + 1):
        grown = []
        for tokens, total in live:
            steps = mean_log_probs(models, source, tokens)
            steps[list(NEVER)] = -torch.inf
            grown += [((*tokens, token), total + step) for token, step in enumerate(steps.tolist())]
        grown.sort(key=lambda item: -item[1])
        finished += [(total / length, tokens[:-1]) for tokens, total in grown[:width] if tokens[-1] == EOS]
        live = [item for item in grown[: 2 * width] if item[0][-1] != EOS][:width]
        finished.sort(reverse=True)
        if len(finished) >= width and live[0][1] / length <= finished[0][0]:
            break
    return max(finished or [(total / LIMIT, tokens) for tokens, total in live])


@every_team
@pytest.mark.parametrize("width", [1, 2])
def test_search_is_a_plain_loop_over_averaged_probabilities(team, width):
    models = members(team)
    found = translate(together(models), SOURCES, SearchOptions(beam=width, cap=LIMIT))
    for source, (best,) in zip(SOURCES, found, strict=True):
        score, tokens = plain_beam(models, source, width)
        assert best.tokens == tokens
        assert best.score == pytest.approx(score)
    if width == 1:
        assert write(together(models), SOURCES, SearchOptions(beam=1, cap=LIMIT)) == [h.tokens for (h,) in found]


@every_team
def test_given_pairs_are_scored_by_averaged_probabilities(team):
    models, targets = members(team), [[5, 4], []]
    for source, target, line in zip(SOURCES, targets, score_pairs(together(models), SOURCES, targets), strict=True):
        goal = [*target, EOS]
        expected = [mean_log_probs(models, source, goal[:i])[token].item() for i, token in enumerate(goal)]
        assert line == pytest.approx(expected)


@every_team
def test_members_made_for_inference_speak_as_those_they_were_made_of(team):
    models = [model.float() for model in members(team)]
    swift = [for_inference(OPTIONS[kind], model) for kind, model in zip(TEAMS[team], models, strict=True)]
    options = SearchOptions(beam=3, n_best=2, cap=LIMIT)
    slow, fast = (translate(together(every), SOURCES, options) for every in (models, swift))
    for one, other in zip(slow, fast, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], rel=1e-4)


def test_the_choice_is_not_always_that_of_a_member():
    """Else the tests above would prove little."""
    models = members("three")
    options = SearchOptions(beam=3, cap=LIMIT)
    joint = [best.tokens for (best,) in translate(together(models), SOURCES, options)]
    for model in models:
        assert [best.tokens for (best,) in translate(model, SOURCES, options)] != joint


def test_a_model_beside_itself_is_that_model_and_alone_it_is_itself():
    model, _ = members("two-widths")
    assert together([model]) is model
    options = SearchOptions(beam=2, n_best=2, cap=LIMIT)
    alone, twice = (translate(every, SOURCES, options) for every in (model, together([model, model])))
    for one, other in zip(alone, twice, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        assert [h.log_probability for h in one] == pytest.approx([h.log_probability for h in other])


def test_members_have_no_order():
    models, options = members("three"), SearchOptions(beam=2, cap=LIMIT)
    forth, back = (translate(together(every), SOURCES, options) for every in (models, models[::-1]))
    assert [h.tokens for (h,) in forth] == [h.tokens for (h,) in back]


@every_team
def test_decoding_at_once_is_decoding_piece_by_piece(team):
    model = together(members(team))
    source = torch.tensor([[4, 5, EOS], [6, 6, EOS]])
    tokens = torch.tensor([[BOS, 4, 8, 5], [BOS, 7, 7, 6]])
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    with torch.no_grad():
        whole, _ = model.decoder(tokens, model.decoder.begin(memory))
        first, state = model.decoder(tokens[:, :1], model.decoder.begin(memory))
        second, _ = model.decoder(tokens[:, 1:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(2, 4, dtype=torch.float64))


def test_drawing_among_one_token_is_greedy():
    model = together(members("two-widths"))
    drawn = draw(model, SOURCES, SamplingOptions(top_k=1), SearchOptions(cap=LIMIT), seed=3)
    assert [h.tokens for (h,) in drawn] == write(model, SOURCES, SearchOptions(beam=1, cap=LIMIT))


def test_the_mean_of_probabilities_by_hand():
    found = log_mean(torch.tensor([[0.5, 0.5], [0.9, 0.1]]).log())
    torch.testing.assert_close(found.exp(), torch.tensor([0.7, 0.3]))


def test_what_reads_weights_is_refused():
    model = together(members("two-widths"))
    with pytest.raises(DecodingError, match="without a shortlist"):
        _ = model.decoder.output.weight
