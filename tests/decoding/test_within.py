"""A search under a rule: each sentence keeps to its own, in whatever company it is searched."""

import pytest
import torch

from regard.data.treebank import unlinearise
from regard.decoding.grammar import Grammar
from regard.decoding.options import SearchOptions
from regard.decoding.within import search_within
from regard.recipe.build import build
from regard.recipe.models import ByteNetOptions, ConvS2SOptions, RecurrentOptions, TransformerOptions
from regard.text.special import NAMES

NAMED = [*NAMES, "XX", "(A", ")A", "(B", ")B", "(half"]
GRAMMAR = Grammar(NAMED, chains=2, cap=14)
FAMILIES = {
    "transformer": TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1),
    "recurrent": RecurrentOptions(width=6, embedding=5),
    "bytenet": ByteNetOptions(width=8, rates=(1, 2), encoder_rounds=1, decoder_rounds=1),
    "convs2s": ConvS2SOptions(width=6, encoder_layers=1, decoder_layers=1),
}
SOURCES = [[5, 6], [7, 8, 9, 10, 4], [6], [9, 9, 4], [4, 5]]
WORDS = [2, 3, 1, 4, 1]  # not the number of tokens: words have pieces


def rule(places):
    return GRAMMAR.over([WORDS[place] for place in places])


@pytest.fixture(params=FAMILIES)
def model(request):
    return build(FAMILIES[request.param], 11, len(NAMED), shared=False, seed=3).double().eval()


@pytest.mark.parametrize("model", ["transformer", "recurrent"], indirect=True)
@pytest.mark.parametrize(("beam", "batch_tokens"), [(1, 4096), (2, 8)])
def test_sentences_are_searched_as_if_each_were_alone(model, beam, batch_tokens):
    options = SearchOptions(beam=beam, n_best=beam)
    found = search_within(model, SOURCES, options, rule, batch_tokens=batch_tokens)
    for place, hypotheses in enumerate(found):
        alone = search_within(model, [SOURCES[place]], options, lambda _, place=place: rule([place]))[0]
        assert [h.tokens for h in hypotheses] == [h.tokens for h in alone]
        assert [h.score for h in hypotheses] == pytest.approx([h.score for h in alone])


def test_whatever_the_weights_each_output_is_a_tree_over_its_words(model):
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 2)
    found = search_within(model, SOURCES, SearchOptions(beam=3, n_best=3), rule)
    for words, hypotheses in zip(WORDS, found, strict=True):
        for hypothesis in hypotheses:
            assert hypothesis.finished
            tree = unlinearise([NAMED[id] for id in hypothesis.tokens], ["w"] * words)
            assert len(tree.words) == words


@pytest.mark.parametrize("model", ["recurrent"], indirect=True)
def test_nothing_to_search_gives_nothing(model):
    assert search_within(model, [], SearchOptions(), rule) == []
