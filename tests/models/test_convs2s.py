"""ConvS2S: gated convolutions and attention in every layer, against torch's convolution and loops."""

import math

import pytest
import torch
import torch.nn.functional as F

from regard.errors import DecodingError, RecipeError
from regard.explaining.record import record
from regard.models.interface import Memory, parameters
from regard.recipe.build_convolutional import build_convs2s
from regard.recipe.models import ConvS2SOptions
from regard.recipe.recipe import parse

WIDTH, HALF = 6, math.sqrt(0.5)
SIZES = {"width": WIDTH, "encoder_layers": 2, "decoder_layers": 3, "max_length": 12, "dropout": 0.0}
TOKENS = torch.tensor([[4, 7, 5, 6, 3], [8, 3, 0, 0, 0]])
MASK = TOKENS != 0
PREFIX = torch.tensor([[2, 5, 6, 4], [2, 7, 4, 4]])


def build(*, shared=False, **chosen):
    torch.manual_seed(3)
    return build_convs2s(ConvS2SOptions(**(SIZES | chosen)), 9, 9 if shared else 8, shared).double().eval()


def glu_by_torch(layer, x, padding):
    linear = layer.convolution.linear
    kernel = linear.weight.view(2 * WIDTH, -1, WIDTH).mT
    a, b = F.conv1d(F.pad(x.mT, padding), kernel, linear.bias).mT.chunk(2, -1)
    return a * b.sigmoid()


def embedded(side, tokens):
    table = side.entrance.positions.table.table.weight
    return side.entrance.embedding.table(tokens) + table[: tokens.shape[1]]


def attention_by_loops(d, z, e):
    """Σ_j softmax_j(d_i · z_j) (z_j + e_j) √½ · m √(1/m), one number after another."""
    rows, m = [], len(z)
    for query in d.tolist():
        powers = [math.exp(sum(q * k for q, k in zip(query, key, strict=True))) for key in z.tolist()]
        values = [
            [(a + b) * HALF for a, b in zip(*pair, strict=True)] for pair in zip(z.tolist(), e.tolist(), strict=True)
        ]
        read = [sum(p * v[i] for p, v in zip(powers, values, strict=True)) / sum(powers) for i in range(WIDTH)]
        rows.append([x * m * math.sqrt(1 / m) for x in read])
    return torch.tensor(rows, dtype=torch.float64)


@torch.no_grad()
def test_the_whole_model_is_its_equations():
    model, row = build(), TOKENS[:1]
    e = embedded(model.encoder, row)
    x = model.encoder.enter(e)
    for layer in model.encoder.layers:
        x = (glu_by_torch(layer, x, (1, 1)) + x) * HALF
    z = model.encoder.leave(x)
    g = embedded(model.decoder, PREFIX[:1])
    x = model.decoder.enter(g)
    for layer in model.decoder.layers:
        h = glu_by_torch(layer.convolution, x, (2, 0))
        c = attention_by_loops(((layer.query(h) + g) * HALF)[0], z[0], e[0])
        x = ((h + layer.read(c)) * HALF + x) * HALF
    expected = model.decoder.leave(x) @ model.decoder.output.weight.mT
    torch.testing.assert_close(model(row, MASK[:1], PREFIX[:1]), expected)


def test_every_layer_of_the_decoder_attends_and_can_be_watched():
    found = record(build(), TOKENS[:1], PREFIX[:1])
    assert [(attention.kind, attention.layer) for attention in found] == [("cross", 0), ("cross", 1), ("cross", 2)]
    for attention in found:
        assert attention.weights.shape == (1, 4, 5)
        torch.testing.assert_close(attention.weights.sum(-1), torch.ones(1, 4, dtype=torch.float64))


def test_recorded_weights_times_values_are_what_each_layer_read():
    model, seen = build(), []
    for layer in model.decoder.layers:
        layer.cross.register_forward_hook(lambda _, inputs, output: seen.append((inputs[1].values[0], output[0][0])))
    for attention, (values, read) in zip(record(model, TOKENS[:1], PREFIX[:1]), seen, strict=True):
        torch.testing.assert_close(attention.weights[0] @ values, read)


def test_equal_values_are_read_at_the_size_that_a_sum_of_as_many_random_ones_has():
    """√m: a source of four words, all alike, is read twice as large as one of a single word."""
    model = build()
    one = torch.randn(1, 1, 2 * WIDTH, dtype=torch.float64)

    def values(words):
        memory = Memory(one.expand(1, words, -1), torch.ones(1, words, dtype=torch.bool), one[:, 0, :0])
        return model.decoder.begin(memory).source.values[0, 0]

    torch.testing.assert_close(values(4), 2 * values(1))


def test_what_a_step_remembers_does_not_grow():
    model = build(taps=5)
    state = model.decoder.begin(model.encode(TOKENS, MASK))
    for token in PREFIX.split(1, 1):
        _, state = model.decoder(token, state)
    assert [tuple(seen.shape) for seen in state.past] == [(2, 4, WIDTH)] * 3
    assert state.length == 4


def test_one_vocabulary_shares_one_table_and_the_output_layer_is_it():
    together, apart = build(shared=True), build(shared=True, share_embeddings=False, tie_output=False)
    assert together.encoder.entrance.embedding is together.decoder.entrance.embedding
    assert together.decoder.output.weight is together.encoder.entrance.embedding.table.weight
    assert parameters(apart) == parameters(together) + 9 * WIDTH + 9 * WIDTH + 9


def test_positions_end_where_the_table_ends():
    with pytest.raises(DecodingError, match="learned 12 positions"):
        build().encode(torch.full((1, 13), 4), torch.ones(1, 13, dtype=torch.bool))
    with pytest.raises(RecipeError, match=r"model\.max_length: 300 learned positions"):
        parse({"data": {}, "model": {"kind": "convs2s", "max_length": 300}}, "here")


def test_even_taps_are_refused():
    with pytest.raises(RecipeError, match=r"model\.taps: 4 is even.*use 3 or 5"):
        build(taps=4)
