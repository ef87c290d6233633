"""Deep recurrent models: what is read enters from the lowest layer on, one step late."""

import pytest
import torch
from torch import nn

from regard.errors import RecipeError
from regard.layers.recurrent import Backwards, BothWays, FastForward, OneWay, Skipped
from regard.recipe.build_recurrent import build_recurrent
from regard.recipe.models import RecurrentOptions

WIDTH, EMBEDDING = 4, 5
TOKENS = torch.tensor([[4, 7, 5, 3], [8, 3, 0, 0]])
MASK = TOKENS != 0
PREFIX = torch.tensor([[2, 5, 6], [2, 7, 4]])


def build(stack, **chosen):
    torch.manual_seed(6)
    sizes = {"embedding": EMBEDDING, "width": WIDTH, "dropout": 0.0, "encoder_layers": 3, "decoder_layers": 3}
    options = RecurrentOptions(**(sizes | {"cell": "lstm", "stack": stack} | chosen))
    return build_recurrent(options, 9, 8, False).double().eval()


def torch_cells(decoder):
    """torch's LSTM cells with the decoder's weights, lowest first."""
    found = []
    for layer in (decoder.first, *decoder.stack.layers):
        cell = getattr(layer, "layer", layer).cell
        twin = nn.LSTMCell(cell.input.in_features, WIDTH).double()
        weights = (cell.input.weight, cell.recurrent.weight, cell.input.bias, cell.recurrent.bias)
        for theirs, ours in zip(twin.parameters(), weights, strict=True):
            theirs.data = ours.data
        found.append(twin)
    return found


def read(decoder, memory, h):
    """Additive attention, written out: Σ softmax(vᵀ tanh(W q + U k)) k."""
    score = decoder.attention.score
    scores = torch.tanh(score.query(h)[:, None] + score.key(memory.values)) @ score.v
    weights = scores.masked_fill(~MASK, -torch.inf).softmax(-1)
    return (weights[..., None] * memory.values).sum(1)


def split(cells):
    """(h, c) of each layer, from the joined state."""
    return [tuple(part.chunk(2, -1)) for part in cells.split(2 * WIDTH, -1)]


def test_a_residual_decoder_is_wus_equations_step_by_step():
    model = build("residual")
    decoder, memory = model.decoder, model.encode(TOKENS, MASK)
    states, expected = split(decoder.begin(memory).cells), []
    for token in PREFIX.unbind(1):
        a, x = read(decoder, memory, states[0][0]), decoder.embedding(token)
        for depth, cell in enumerate(torch_cells(decoder)):
            states[depth] = cell(torch.cat([x, a], -1), states[depth])
            x = states[depth][0] + (x if depth == 2 else 0)
        expected.append(x)
    features, state = decoder.features(PREFIX, decoder.begin(memory))
    torch.testing.assert_close(features, torch.stack(expected, 1))
    torch.testing.assert_close(state.cells, torch.cat([torch.cat(pair, -1) for pair in states], -1))


def test_a_fast_forward_decoder_is_zhous_equations_step_by_step():
    model = build("fast-forward")
    decoder, memory = model.decoder, model.encode(TOKENS, MASK)
    states, expected = split(decoder.begin(memory).cells), []
    for token in PREFIX.unbind(1):
        x = torch.cat([decoder.embedding(token), read(decoder, memory, states[0][0])], -1)
        for depth, cell in enumerate(torch_cells(decoder)):
            f = x @ cell.weight_ih.mT + cell.bias_ih
            states[depth] = cell(x, states[depth])
            x = torch.cat([f[:, : 2 * WIDTH], states[depth][0]], -1)
        expected.append(x)
    features, _ = decoder.features(PREFIX, decoder.begin(memory))
    torch.testing.assert_close(features, torch.stack(expected, 1))


def test_the_first_layer_of_a_residual_encoder_reads_both_ways_and_sums_begin_at_the_third():
    kinds = [type(layer) for layer in build("residual", encoder_layers=4).encoder.stack.layers]
    assert kinds == [BothWays, OneWay, Skipped, Skipped]
    kinds = [type(layer) for layer in build("residual", bidirectional=False).encoder.stack.layers]
    assert kinds == [OneWay, OneWay, Skipped]


def test_a_fast_forward_encoder_turns_round_at_every_layer():
    kinds = [type(layer) for layer in build("fast-forward", encoder_layers=4).encoder.stack.layers]
    assert kinds == [FastForward, Backwards, FastForward, Backwards]
    assert {type(layer) for layer in build("fast-forward", bidirectional=False).encoder.stack.layers} == {FastForward}


def test_a_residual_model_without_feeding_reads_from_the_top():
    model = build("residual", input_feeding=False, attention="dot")
    decoder, memory = model.decoder, model.encode(TOKENS, MASK)
    state = decoder.begin(memory)
    y, _ = decoder.stack(decoder.embedding(PREFIX), state.cells, None)
    weights = (y @ memory.values.mT).masked_fill(~MASK[:, None], -torch.inf).softmax(-1)
    features, _ = decoder.features(PREFIX, state)
    torch.testing.assert_close(features, torch.cat([y, weights @ memory.values], -1))


@pytest.mark.parametrize(
    ("chosen", "path"),
    [
        ({"stack": "residual", "decoder_layers": 1}, "model.stack"),
        ({"stack": "fast-forward", "decoder_layers": 1}, "model.stack"),
        (
            {"stack": "residual", "shared_cell": True, "input_feeding": False, "bidirectional": False},
            "model.shared_cell",
        ),
        ({"stack": "fast-forward", "attention": "dot"}, "model.attention"),
        ({"stack": "fast-forward", "tie_output": True}, "model.tie_output"),
    ],
)
def test_a_deep_model_that_cannot_be_is_refused_by_its_path(chosen, path):
    with pytest.raises(RecipeError, match=rf"^{path}: .*; set ") as refused:
        build(chosen.pop("stack"), **chosen)
    assert "\n" not in str(refused.value)
