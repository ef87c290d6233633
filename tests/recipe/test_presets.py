"""Sizes for someone who chose none, and models by name."""

from collections import Counter
from itertools import pairwise

import pytest

from regard.data.pairs import Pair
from regard.errors import RecipeError
from regard.explaining.alignment import attention_sizes
from regard.models.interface import parameters
from regard.recipe.affordable import weights
from regard.recipe.build import build
from regard.recipe.folder import refuse_impossible
from regard.recipe.lineup import LINEUP
from regard.recipe.models import ByteNetOptions, ConvS2SOptions, RecurrentOptions, TransformerOptions
from regard.recipe.presets import choose, choose_parser, size_for
from regard.recipe.recipe import MODELS, overlay, parse
from regard.request import Request
from regard.run import foreseen
from regard.tasks.guiding import refuse_unteachable
from regard.text.options import TextOptions

DATA = {"data": {"corpora": [{"tsv": "x"}]}}
COUNTS = [1, 4_999, 5_000, 50_000, 100_000, 300_000, 1_000_000]
MULTI30K = 29_000


def chosen(count, name):
    return parse(overlay(choose([Pair("a", "b")] * count, name), DATA), "here")


@pytest.mark.parametrize("name", [*LINEUP, "recurrent"])
def test_every_choice_is_a_possible_model_and_more_text_never_a_smaller_one(name):
    recipes = [chosen(count, name) for count in COUNTS]
    for recipe in recipes:
        refuse_impossible(recipe)
    for smaller, larger in pairwise(recipes):
        assert smaller.model.width <= larger.model.width
        assert smaller.training.learning_rate >= larger.training.learning_rate


@pytest.mark.parametrize("family", MODELS["translate"])
def test_a_family_asked_for_by_its_kind_gets_a_preset_of_that_kind(family):
    assert chosen(MULTI30K, family).model.kind == family


def test_each_name_means_what_its_paper_did():
    models = {name: chosen(MULTI30K, name).model for name in LINEUP}

    def recurrent(name, **expected):
        assert isinstance(models[name], RecurrentOptions)
        assert {key: getattr(models[name], key) for key in expected} == expected

    deck = {"cell": "tanh", "bidirectional": False, "input_feeding": False, "stack": "plain"}
    recurrent("rnn", attention="none", **deck)
    recurrent("simple-attention", attention="dot", shared_cell=True, **deck)
    recurrent("parameterised-attention", attention="parameterised", shared_cell=True, **deck)
    recurrent("bidirectional-gru", cell="gru", attention="additive", bidirectional=True)
    recurrent("gnmt", cell="lstm", stack="residual", attention="additive", input_feeding=True, bidirectional=True)
    recurrent("deep-att", cell="lstm", stack="fast-forward", attention="additive", input_feeding=True)
    assert min(models["gnmt"].encoder_layers, models["gnmt"].decoder_layers) >= 3  # else there is no sum
    assert isinstance(models["bytenet"], ByteNetOptions)
    assert isinstance(models["convs2s"], ConvS2SOptions)
    assert isinstance(models["transformer"], TransformerOptions)
    assert (models["moe"].experts, models["moe"].active) == (8, 2)
    assert (models["fast"].encoder_layers, models["fast"].decoder_layers) == (6, 1)


def test_two_experts_of_a_mixture_do_the_work_of_the_transformers_one_network():
    dense, sparse = chosen(MULTI30K, "transformer").model, chosen(MULTI30K, "moe").model
    assert sparse.active * sparse.feedforward == dense.feedforward
    networks = dense.encoder_layers + dense.decoder_layers
    gates = 2 * sparse.experts * sparse.width
    more = (sparse.experts // sparse.active - 1) * 2 * dense.width * dense.feedforward
    biases = sparse.experts * (sparse.feedforward + sparse.width) - (dense.feedforward + dense.width)
    found = [parameters(build(model, 9, 9, shared=True, seed=1)) for model in (dense, sparse)]
    assert found[1] - found[0] == networks * (more + gates + biases)


def test_models_of_the_line_up_are_of_one_order_of_size():
    sizes = {name: parameters(build(chosen(MULTI30K, name).model, 4000, 4000, shared=True, seed=1)) for name in LINEUP}
    usual = sizes["transformer"]
    for name, size in sizes.items():
        assert usual / 4 < size < usual * 4, (name, size, usual)


@pytest.mark.parametrize("name", LINEUP)
def test_more_trees_never_choose_a_smaller_parser(name):
    kind = {"task": {"kind": "parse"}, "data": {"trees": {"files": ["x"]}}}
    recipes = [parse(overlay(choose_parser(count, name), kind), "here") for count in COUNTS]
    for recipe in recipes:
        refuse_impossible(recipe)
    for smaller, larger in pairwise(recipes):
        assert smaller.model.width <= larger.model.width
        assert smaller.model.dropout >= larger.model.dropout


@pytest.mark.parametrize("name", LINEUP)
def test_a_parser_is_guided_where_it_has_attention(name):
    asked = {"task": {"kind": "parse"}, "data": {"trees": {"files": ["x"]}}}
    recipe = parse(overlay(choose_parser(100, name), asked), "here")
    model = build(recipe.model, 20, 20, shared=False, seed=1)
    assert (recipe.loss.guided > 0) == bool(attention_sizes(model)) == LINEUP[name].attends
    if recipe.loss.guided:
        refuse_unteachable(model, recipe.loss)
    assert recipe.task.numbers == 50


def test_an_unknown_preset_is_answered_with_the_nearest_or_all():
    with pytest.raises(RecipeError, match="--preset gnmd: not known; did you mean 'gnmt'"):
        choose([], "gnmd")
    with pytest.raises(RecipeError, match=r"known presets: rnn, simple-attention, .*, fast"):
        choose([], "zzzzz")


def test_more_text_gets_fewer_epochs_when_no_length_is_asked_for():
    found = [chosen(count, "transformer").training.passes for count in COUNTS]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


@pytest.mark.parametrize("asked", [{"steps": 7}, {"settings": ("training.budget=1m",)}, {"epochs": 2.5}])
def test_a_length_that_was_asked_for_takes_the_place_of_the_presets(asked):
    found = foreseen(Request(preset="transformer", **asked)).training
    assert [found.steps, found.budget, found.epochs].count(None) == 2
    assert found.epochs in (None, 2.5)


LINE = "a man in a blue shirt is standing on a ladder cleaning a window "  # 64 characters


def sized(count, *, text=None, batch=None, **length):
    """The model for so many lines; batches of a size that was asked for are in the recipe, others are not."""
    data = DATA["data"] | ({"batch_tokens": batch} if batch else {})
    asked = parse({"data": data, "text": text or {}, "training": length}, "asked")
    return parse(overlay(choose([Pair(LINE, LINE)] * count, "transformer", asked), DATA), "here").model


def test_a_short_budget_chooses_a_smaller_model_and_never_the_smallest():
    widths = [sized(150_000, budget=budget).width for budget in ("1m", "30m", "12h")]
    assert widths == [192, 192, 256]
    assert sized(150_000).width == 256
    assert sized(29_000, budget="1m").width == 192
    assert sized(4_999, budget="1m").width == 128


def test_a_run_of_few_passes_has_little_dropout():
    """29,000 · (64 / 4 + 1) = 493,000 target tokens are a pass, in batches of 2,000 some 247 steps."""
    assert sized(29_000, steps=9 * 247).dropout == 0.1
    assert sized(29_000, steps=11 * 247).dropout == 0.2
    assert sized(29_000, steps=11 * 247, batch=1000).dropout == 0.1
    assert sized(29_000, steps=6 * 247, batch=4000).dropout == 0.2
    assert sized(29_000, steps=6 * 247, accumulate=2).dropout == 0.2
    assert sized(29_000, steps=11 * 247, text={"kind": "characters"}).dropout == 0.1  # 65 tokens instead of 17 a line
    assert sized(29_000, epochs=9.5).dropout == 0.1
    assert sized(29_000, epochs=10).dropout == 0.2
    assert sized(29_000).dropout == 0.2
    assert sized(29_000, budget="5m").dropout == 0.1
    assert sized(29_000, budget="2h").dropout == 0.2


def test_a_small_model_for_much_text_has_no_more_dropout_than_the_text_asks_for():
    assert sized(150_000, budget="90m").dropout == 0.1


def test_the_weights_of_a_size_are_those_of_the_model():
    """But for biases, norms and the alphabet."""
    size, recipe = size_for(MULTI30K), chosen(MULTI30K, "transformer")
    counts = Counter(x=4_000_000)
    for text, words in ({}, 7_200), ({"size": 3_000}, 3_000), ({"kind": "bytes"}, 0):
        model = build(recipe.model, words + 5, words + 5, shared=True, seed=1)
        assert weights(size, counts, TextOptions(**text)) == pytest.approx(parameters(model), rel=0.01)


def test_transformers_that_translate_give_their_tables_of_words_a_rate_of_their_own():
    assert chosen(MULTI30K, "transformer").training.rest_rate == 3
    assert chosen(MULTI30K, "bidirectional-gru").training.rest_rate == 1
    assert "rest_rate" not in choose_parser(3_000, "transformer")["training"]


def test_weights_fade_where_muon_trains_on_little_text():
    def decay(name, count, **length):
        asked = parse({"data": DATA["data"], "training": length}, "asked")
        found = parse(overlay(choose([Pair(LINE, LINE)] * count, name, asked), DATA), "here")
        return found.training.weight_decay

    assert decay("transformer", 29_000) == decay("transformer", 29_000, budget="1m") == decay("fast", 4_999) == 0.3
    assert decay("bidirectional-gru", 29_000) == decay("transformer", 29_000, optimiser="adamw") == 0.01
    assert decay("bidirectional-gru", 29_000, optimiser="muon") == 0.3
    assert decay("transformer", 150_000) == decay("transformer", 150_000, budget="90m") == 0.01
    assert "weight_decay" not in choose_parser(3_000, "transformer")["training"]
