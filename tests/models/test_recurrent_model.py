import math

import pytest
import torch
from torch import nn

from regard.errors import RecipeError
from regard.layers.recurrent import Cell
from regard.models.interface import Memory, parameters
from regard.models.recurrent import RecurrentState
from regard.recipe.build_recurrent import build_recurrent
from regard.recipe.models import RecurrentOptions

SOURCE, TARGET = 9, 11  # vocabularies
TOKENS = torch.tensor([[4, 7, 5, 3], [8, 3, 0, 0]])
MASK = TOKENS != 0
PREFIX = torch.tensor([[2, 5, 6], [2, 10, 4]])


def options(**chosen):
    return RecurrentOptions(**({"embedding": 5, "width": 6, "dropout": 0.0} | chosen))


def build(*, shared=False, **chosen):
    torch.manual_seed(4)
    target = SOURCE if shared else TARGET
    return build_recurrent(options(**chosen), SOURCE, target, shared).double().eval()


def simple(**chosen):
    """The decks' simple attention: tanh, one W^h, unscaled dot products, W^o [y^d; y^a]."""
    deck = {"cell": "tanh", "attention": "dot", "bidirectional": False, "input_feeding": False, "shared_cell": True}
    return build(**(deck | chosen))


def test_the_simple_model_is_the_decks_equations_in_plain_python():
    model = simple()
    weights = {name: value.tolist() for name, value in model.state_dict().items()}
    cell = "decoder.stack.layers.0.cell"

    def times(matrix, bias, vector):
        return [sum(m * x for m, x in zip(row, vector, strict=True)) + b for row, b in zip(matrix, bias, strict=True)]

    def step(h, x):
        uh = times(weights[f"{cell}.recurrent.weight"], weights[f"{cell}.recurrent.bias"], h)
        wx = times(weights[f"{cell}.input.weight"], weights[f"{cell}.input.bias"], x)
        return [math.tanh(a + b) for a, b in zip(wx, uh, strict=True)]

    h, encoded = [0.0] * 6, []
    for token in TOKENS[0].tolist():
        h = step(h, weights["encoder.embedding.weight"][token])
        encoded.append(h)
    logits = []
    for token in PREFIX[0].tolist():
        h = step(h, weights["decoder.embedding.weight"][token])
        powers = [math.exp(sum(a * b for a, b in zip(h, e, strict=True))) for e in encoded]
        read = [sum(p * e[i] for p, e in zip(powers, encoded, strict=True)) / sum(powers) for i in range(6)]
        logits.append(times(weights["decoder.output.weight"], weights["decoder.output.bias"], h + read))
    expected = torch.tensor([logits], dtype=torch.float64)
    torch.testing.assert_close(model(TOKENS[:1], MASK[:1], PREFIX[:1]), expected)


def test_a_shared_cell_is_one_set_of_weights():
    model = simple()
    cell = 6 * 5 + 6 * 6 + 2 * 6
    assert parameters(model) == 5 * (SOURCE + TARGET) + cell + 12 * TARGET + TARGET
    assert parameters(simple(shared_cell=False)) == parameters(model) + cell
    assert model.encoder.stack is model.decoder.stack


def test_one_vocabulary_shares_one_table_when_the_recipe_says_so():
    together, apart = build(shared=True), build(shared=True, share_embeddings=False)
    assert together.encoder.embedding is together.decoder.embedding
    assert apart.encoder.embedding is not apart.decoder.embedding
    assert parameters(apart) - parameters(together) == 5 * SOURCE
    other = build(shared=False)
    assert other.encoder.embedding is not other.decoder.embedding


@pytest.mark.parametrize("chosen", [{"embedding": 6}, {"embedding": 18, "input_feeding": False}])
def test_a_tied_output_layer_is_the_target_table(chosen):
    model = build(**chosen, tie_output=True)
    assert model.decoder.output.weight is model.decoder.embedding.weight
    state = model.decoder.begin(model.encode(TOKENS, MASK))
    features, _ = model.decoder.features(PREFIX, state)
    torch.testing.assert_close(
        model.decoder.output(features), features @ model.decoder.embedding.weight.mT + model.decoder.output.bias
    )


@pytest.mark.parametrize("cell", ["tanh", "lstm", "gru"])
def test_without_attention_the_decoder_lives_on_the_last_state_alone(cell):
    model = build(cell=cell, attention="none", input_feeding=False)
    memory = model.encode(TOKENS, MASK)
    other = Memory(torch.randn_like(memory.values), memory.mask, memory.summary)
    ours, theirs = (model.decoder(PREFIX, model.decoder.begin(m))[0] for m in (memory, other))
    torch.testing.assert_close(ours, theirs, atol=0, rtol=0)
    third = Memory(memory.values, memory.mask, memory.summary + 0.1)
    assert not torch.allclose(ours, model.decoder(PREFIX, model.decoder.begin(third))[0])


def test_a_one_way_summary_is_the_decoders_first_state_itself():
    model = build(bidirectional=False, cell="lstm", encoder_layers=2, decoder_layers=2)
    memory = model.encode(TOKENS, MASK)
    torch.testing.assert_close(model.decoder.begin(memory).cells, memory.summary, atol=0, rtol=0)
    # The top layer's h, at the end of each row, is the last value of memory that is visible.
    top = memory.summary[:, 12:18]
    torch.testing.assert_close(top, memory.values[torch.arange(2), MASK.sum(1) - 1], atol=0, rtol=0)


def test_a_bridge_takes_over_where_the_shapes_differ():
    model = build(bidirectional=True, decoder_layers=3)
    memory = model.encode(TOKENS, MASK)
    linear = model.decoder.bridge[0]
    expected = (memory.summary @ linear.weight.mT + linear.bias).tanh()
    assert expected.shape[-1] == 3 * 6
    torch.testing.assert_close(model.decoder.begin(memory).cells, expected)


def test_input_feeding_joins_the_last_attentional_vector_to_the_next_input():
    model = build(attention="general")
    decoder, memory = model.decoder, model.encode(TOKENS, MASK)
    state = decoder.begin(memory)
    cell, h, feed = decoder.stack.layers[0].cell, state.cells, torch.zeros(2, 6, dtype=torch.float64)
    expected = []
    for token in PREFIX.unbind(1):
        x = torch.cat([decoder.embedding(token), feed], dim=-1)
        h = cell(cell.input(x), h)
        scores = (h[:, None] @ (memory.values @ decoder.readout.attention.score.key.weight.mT).mT)[:, 0]
        weights = scores.masked_fill(~MASK, -math.inf).softmax(-1)
        read = (weights[..., None] * memory.values).sum(1)
        feed = (torch.cat([h, read], dim=-1) @ decoder.readout.combine.weight.mT + decoder.readout.combine.bias).tanh()
        expected.append(feed)
    features, state = decoder.features(PREFIX, state)
    torch.testing.assert_close(features, torch.stack(expected, dim=1))
    torch.testing.assert_close(state.feed, expected[-1])


def calls_of_attention(model):
    """How often the decoder's attention runs for one teacher-forced pass, and the weights a watcher sees."""
    seen = []
    handle = model.decoder.readout.attention.register_forward_hook(
        lambda module, inputs, _: seen.append(module.weights(*inputs))
    )
    model(TOKENS, MASK, PREFIX)
    handle.remove()
    return seen


def test_attention_runs_once_for_all_positions_unless_it_feeds_back():
    assert len(calls_of_attention(build(input_feeding=False))) == 1
    assert len(calls_of_attention(build(input_feeding=True))) == PREFIX.shape[1]


@pytest.mark.parametrize("coverage", [False, True])
@pytest.mark.parametrize("input_feeding", [False, True])
def test_a_watcher_sees_one_distribution_over_the_visible_source_per_target_position(coverage, input_feeding):
    weights = torch.cat(calls_of_attention(build(coverage=coverage, input_feeding=input_feeding)), dim=2)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 3, dtype=torch.float64))
    assert (weights[1, ..., 2:] == 0).all()


def test_dropout_acts_in_training_only():
    model = build(dropout=0.5)
    torch.testing.assert_close(model(TOKENS, MASK, PREFIX), model(TOKENS, MASK, PREFIX), atol=0, rtol=0)
    model.train()
    assert not torch.allclose(model(TOKENS, MASK, PREFIX), model(TOKENS, MASK, PREFIX))


def test_an_lstm_starts_with_its_forget_gate_open():
    forget = [m.input.bias[6:12] for m in build(cell="lstm").modules() if isinstance(m, Cell)]
    assert all((bias > 0.5).all() for bias in forget)


def test_selecting_rows_of_a_state_selects_every_part():
    model = build(coverage=True)
    state = model.decoder(PREFIX, model.decoder.begin(model.encode(TOKENS, MASK)))[1]
    chosen = state.select(torch.tensor([1, 1]))
    assert isinstance(chosen, RecurrentState)
    for whole, part in [
        (state.cells, chosen.cells),
        (state.feed, chosen.feed),
        (state.source.past, chosen.source.past),
    ]:
        torch.testing.assert_close(part, whole[[1, 1]], atol=0, rtol=0)


@pytest.mark.parametrize(
    ("chosen", "path"),
    [
        ({"coverage": True, "attention": "general"}, "model.coverage"),
        ({"attention": "none"}, "model.input_feeding"),
        ({"attention": "dot"}, "model.attention"),
        ({"attention": "scaled-dot"}, "model.attention"),
        ({"shared_cell": True}, "model.shared_cell"),
        ({"shared_cell": True, "bidirectional": False}, "model.shared_cell"),
        (
            {"shared_cell": True, "bidirectional": False, "input_feeding": False, "decoder_layers": 2},
            "model.shared_cell",
        ),
        ({"tie_output": True}, "model.tie_output"),
        ({"tie_output": True, "embedding": 6, "input_feeding": False}, "model.tie_output"),
    ],
)
def test_what_cannot_be_built_is_refused_by_its_path_in_one_line(chosen, path):
    with pytest.raises(RecipeError) as refused:
        build_recurrent(options(**chosen), SOURCE, TARGET, False)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "; set " in message or "; make " in message
    assert "\n" not in message


def test_every_kind_of_attention_reads_the_source():
    for attention in ("general", "additive", "parameterised"):
        model = build(attention=attention)
        memory = model.encode(TOKENS, MASK)
        other = Memory(memory.values.roll(1, dims=-1), memory.mask, memory.summary)
        ours, theirs = (model.decoder(PREFIX, model.decoder.begin(m))[0] for m in (memory, other))
        assert not torch.allclose(ours, theirs)


def test_out_layers_are_linear_in_the_features():
    decoder = build().decoder
    assert isinstance(decoder.output, nn.Linear)
    a, b = torch.randn(2, 6, dtype=torch.float64)
    torch.testing.assert_close(
        decoder.output(a + b) + decoder.output(torch.zeros_like(a)), decoder.output(a) + decoder.output(b)
    )
