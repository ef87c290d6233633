"""From weights of tokens to links of words: sums and means by hand, and the weights that the model itself used."""

import pytest
import torch

from regard.explaining.alignment import (
    Look,
    attention_sizes,
    belonging,
    cross_attentions,
    cross_weights,
    described,
    every_look,
    looked,
    side_by_side,
    strongest,
    word_weights,
)
from regard.explaining.record import record
from regard.recipe.build import build
from regard.recipe.models import ByteNetOptions, ConvS2SOptions, RecurrentOptions, TransformerOptions

SIZES = {"width": 8, "heads": 2, "feedforward": 12, "encoder_layers": 1, "decoder_layers": 3, "dropout": 0.3}
MODELS = {
    "Transformer": TransformerOptions(**SIZES),
    "Transformer, post-norm, relative": TransformerOptions(**SIZES, order="post", positions="relative"),
    "Transformer, pruned": TransformerOptions(**SIZES, kept_heads={"cross": [[1, 2], [2], [1, 2]]}),
    "Transformer, linear self-attention": TransformerOptions(**SIZES, attention="linear"),
    "GRU, additive, fed": RecurrentOptions(embedding=5, width=6),
    "GRU, coverage": RecurrentOptions(embedding=5, width=6, coverage=True, input_feeding=False),
    "residual LSTM": RecurrentOptions(embedding=5, width=6, cell="lstm", stack="residual", decoder_layers=3),
    "ConvS2S": ConvS2SOptions(width=6, encoder_layers=2, decoder_layers=2),
}
HEADS = {"Transformer": (2, 2, 2), "Transformer, pruned": (2, 1, 2), "GRU, additive, fed": (1,), "ConvS2S": (1, 1)}
SOURCES, TARGETS = [[5, 4, 6, 8, 3], [7, 3]], [[2, 7, 5], [2, 4, 6]]


def model_of(options):
    return build(options, 11, 9, shared=False, seed=3).double().eval()


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_a_batch_are_those_recorded_of_each_pair_alone(name):
    model = model_of(MODELS[name])
    source = torch.tensor([row + [0] * (5 - len(row)) for row in SOURCES])
    found = cross_weights(model, source, source > 0, torch.tensor(TARGETS))
    for row, (one, other) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        maps = [each for each in record(model, torch.tensor([one]), torch.tensor([other])) if each.kind == "cross"]
        for layer, alone in zip(found, maps, strict=True):
            torch.testing.assert_close(layer[row, ..., : len(one)], alone.weights)
            assert not layer[row, ..., len(one) :].any()


@pytest.mark.parametrize("name", HEADS)
def test_a_model_is_as_large_as_its_recipe_says(name):
    assert attention_sizes(model_of(MODELS[name])) == HEADS[name]


@pytest.mark.parametrize(
    "options",
    [ByteNetOptions(width=6), RecurrentOptions(embedding=5, width=6, attention="none", input_feeding=False)],
    ids=lambda options: options.kind,
)
def test_a_model_without_attention_has_none(options):
    model = model_of(options)
    assert cross_attentions(model) == []
    assert attention_sizes(model) == ()


# ---------------------------------------------------------------- where to look
WEIGHTS = list(torch.arange(2 * 2 * 3 * 4, dtype=torch.float64).reshape(2, 2, 3, 4))  # layers, heads, inputs, source


def test_a_token_is_written_one_step_before_it_is_read():
    """Three inputs, <s> and two tokens: these are written at steps 0 and 1, read at 1 and 2."""
    assert torch.equal(looked(WEIGHTS, Look(2, 1, "writing")), WEIGHTS[1][0, [0, 1]])
    assert torch.equal(looked(WEIGHTS, Look(2, 1, "reading")), WEIGHTS[1][0, [1, 2]])


def test_without_a_head_or_a_layer_it_is_their_mean():
    for step in ("reading", "writing"):
        heads = {(layer, head): looked(WEIGHTS, Look(layer, head, step)) for layer in (1, 2) for head in (1, 2)}
        torch.testing.assert_close(looked(WEIGHTS, Look(1, None, step)), (heads[1, 1] + heads[1, 2]) / 2)
        torch.testing.assert_close(looked(WEIGHTS, Look(None, None, step)), sum(heads.values()) / 4)


def test_the_mean_of_all_counts_every_head_once_though_layers_have_unequally_many():
    one, other = WEIGHTS[0][:1], WEIGHTS[1]
    expected = (one[0] + other[0] + other[1]) / 3
    torch.testing.assert_close(looked([one, other], Look(None, None, "writing")), expected[:-1])
    torch.testing.assert_close(looked([one, other], Look(1, None, "writing")), one[0, :-1])


def test_sizes_can_be_read():
    assert described([4, 4, 4]) == "3 layers of 4 heads"
    assert described([4, 4, 2]) == "3 layers of 4, 4 and 2 heads"


def test_every_place_to_look_is_there_once():
    assert Look(2, 2) not in every_look([3, 1])
    found = every_look([3, 3])
    assert len(set(found)) == len(found) == 2 * (2 * 3 + 2 + 1)
    assert {Look(2, 3, "writing"), Look(1, None, "reading"), Look()} <= set(found)


def test_a_place_to_look_can_be_read():
    assert str(Look(2, 3, "writing")) == "layer 2, head 3, writing"
    assert str(Look(2)) == "layer 2, mean of its heads, writing"
    assert str(Look()) == "mean of all layers and heads, writing"


# ---------------------------------------------------------------- words
def test_words_by_hand():
    """Target pieces a1 a2 b, source pieces x1 x2 y </s>: the end is left out by who cuts the weights."""
    weights = torch.tensor([[0.1, 0.2, 0.3], [0.3, 0.4, 0.1], [0.0, 0.1, 0.2]], dtype=torch.float64)
    target, source = belonging([range(1), range(1), range(1, 2)], 2), belonging([range(1), range(1), range(1, 2)], 2)
    found = word_weights(weights, target, source)
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.2], [0.1, 0.2]], dtype=torch.float64))
    assert strongest(found, 0.0) == {(0, 0), (1, 1)}
    assert strongest(found, 0.3) == {(0, 0)}
    assert strongest(found, 0.6) == frozenset()


def test_pieces_of_no_word_and_of_two_words():
    pieces = [range(0), range(1), range(2), range(0), range(1, 2)]
    assert belonging(pieces, 2).tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 0, 1]]


def test_the_whole_of_a_source_is_as_much_as_its_words():
    weights = torch.rand(4, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    split = belonging([range(i // 2, i // 2 + 1) for i in range(6)], 3)
    whole, each = belonging([range(1)] * 6, 1), torch.eye(4)
    torch.testing.assert_close(word_weights(weights, each, split).sum(-1), word_weights(weights, each, whole)[:, 0])


def test_a_word_without_pieces_is_linked_to_none():
    weights = torch.rand(2, 3, generator=torch.Generator().manual_seed(1))
    found = word_weights(weights, belonging([range(1), range(1)], 2), belonging([range(1, 2)] * 3, 2))
    assert strongest(found, 0.0) == {(1, 0)}
    assert strongest(word_weights(weights[:0], torch.zeros(1, 0), torch.ones(1, 3)), 0.0) == frozenset()
    assert strongest(torch.zeros(2, 0), 0.0) == strongest(torch.zeros(0, 2), 0.0) == frozenset()


def test_target_words_of_one_source_word_stand_beside_each_other():
    """Source word 0 has the target words 0, 2, 3 and 5, and most from 3; source word 1 has 1 and 4, most from 1."""
    weights = torch.tensor([[0.5, 0.1], [0.2, 0.6], [0.4, 0.3], [0.9, 0.0], [0.1, 0.4], [0.6, 0.2]])
    assert strongest(weights, 0.0) == {(0, 0), (1, 1), (0, 2), (0, 3), (1, 4), (0, 5)}
    assert side_by_side(weights) == {(0, 2), (0, 3), (1, 1)}
    assert side_by_side(torch.zeros(2, 3)) == side_by_side(torch.zeros(0, 2)) == frozenset()
