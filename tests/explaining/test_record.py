"""Recorded weights are those that the model used: they explain its output, and replaying equals decoding."""

import pytest
import torch
from torch import nn

from regard.explaining.record import Attention, kinds, record, watch
from regard.models.interface import Memory, SequenceToSequence, no_summary
from regard.recipe.build_convolutional import build_bytenet, build_convs2s
from regard.recipe.build_recurrent import build_recurrent
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import ByteNetOptions, ConvS2SOptions, RecurrentOptions, TransformerOptions

SIZES = {"width": 8, "heads": 2, "feedforward": 12, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.3}
TRANSFORMERS = [
    {},
    {"order": "post"},
    {"positions": "relative"},
    {"positions": "rotary"},
    {"positions": "alibi"},
    {"attention": "window", "window": 1},
    {"attention": "linear"},
]
RECURRENT = [
    {},
    {"input_feeding": False},
    {"coverage": True},
    {"attention": "general", "cell": "lstm", "decoder_layers": 2},
    {"attention": "parameterised", "bidirectional": False},
    {"stack": "residual", "decoder_layers": 3},
    {"stack": "fast-forward", "decoder_layers": 2, "cell": "lstm"},
]
SOURCE = torch.tensor([[5, 4, 6, 8, 3]])
TARGET = torch.tensor([[2, 7, 5, 4]])


def transformer(choices):
    torch.manual_seed(0)
    return build_transformer(TransformerOptions(**SIZES | choices), 11, 9, shared=False).double().eval()


def recurrent(choices):
    torch.manual_seed(0)
    return build_recurrent(RecurrentOptions(embedding=6, width=5, **choices), 11, 9, shared=False).double().eval()


def convs2s(choices):
    torch.manual_seed(0)
    return build_convs2s(ConvS2SOptions(width=6, **choices), 11, 9, shared=False).double().eval()


MODELS = [
    *((transformer, choices) for choices in TRANSFORMERS),
    *((recurrent, choices) for choices in RECURRENT),
    (convs2s, {}),
]


@pytest.fixture(params=MODELS, ids=lambda pair: f"{pair[0].__name__} {pair[1]}")
def model(request):
    build, choices = request.param
    return build(choices)


def test_every_query_spreads_all_its_attention(model):
    for attention in record(model, SOURCE, TARGET):
        torch.testing.assert_close(attention.weights.sum(-1), torch.ones_like(attention.weights[..., 0]))


def test_maps_have_a_row_for_each_query_and_a_column_for_each_key(model):
    sizes = {"encoder": (5, 5), "decoder": (4, 4), "cross": (4, 5)}
    recorded = record(model, SOURCE, TARGET)
    assert "cross" in {attention.kind for attention in recorded}
    for attention in recorded:
        assert attention.weights.shape[1:] == sizes[attention.kind]


def test_a_map_of_a_prefix_is_the_beginning_of_the_map(model):
    whole = {attention.name: attention for attention in record(model, SOURCE, TARGET)}
    for part in record(model, SOURCE, TARGET[:, :2]):
        keys = part.weights.shape[2]
        same = whole[part.name].weights[:, : part.weights.shape[1], :keys]
        torch.testing.assert_close(part.weights, same)


def test_no_decoder_looks_at_the_future(model):
    for attention in record(model, SOURCE, TARGET):
        if attention.kind == "decoder":
            assert not attention.weights.triu(1).any()


@pytest.mark.parametrize("choices", TRANSFORMERS, ids=str)
def test_weights_times_values_are_what_the_fast_kernel_gave(choices):
    model = transformer(choices)
    given = {}
    handles = [
        module.register_forward_hook(lambda _, inputs, output, name=name: given.update({name: (inputs, output)}))
        for name, module in model.named_modules()
        if name.endswith("kernel")
    ]
    recorded = record(model, SOURCE, TARGET)
    for handle in handles:
        handle.remove()
    assert {attention.name for attention in recorded} == set(given)
    for attention in recorded:
        inputs, output = given[attention.name]
        torch.testing.assert_close(attention.weights @ inputs[1].values[0], output[0])


@torch.no_grad()
@pytest.mark.parametrize("choices", [{}, {"positions": "relative"}, {"positions": "rotary"}], ids=str)
def test_replaying_gives_the_weights_of_decoding_step_by_step(choices):
    model = transformer(choices)
    state = model.decoder.begin(model.encode(SOURCE, SOURCE > 0))
    replayed = {attention.name: attention.weights for attention in record(model, SOURCE, TARGET)}
    with watch(model) as calls:
        for step in range(4):
            _, state = model.decoder(TARGET[:, step : step + 1], state)
    for name, steps in calls.items():
        if name.startswith("decoder"):
            for step, weights in enumerate(steps):
                keys = weights.shape[-1]
                torch.testing.assert_close(weights[0, :, 0], replayed[name][:, step, :keys])


def test_a_transformer_names_its_maps_by_layer_and_kind():
    found = [(a.kind, a.layer) for a in record(transformer({}), SOURCE, TARGET)]
    assert found == [("encoder", 0), ("decoder", 0), ("cross", 0), ("decoder", 1), ("cross", 1)]


def test_kinds_are_read_from_paths():
    assert kinds(
        [
            "encoder.layers.0.attention.kernel",
            "decoder.layers.0.attention.kernel",
            "decoder.layers.0.cross.kernel",
            "decoder.layers.0.cross",
            "decoder.readout.attention",
        ]
    ) == {
        "encoder.layers.0.attention.kernel": "encoder",
        "decoder.layers.0.attention.kernel": "decoder",
        "decoder.layers.0.cross.kernel": "cross",
        "decoder.layers.0.cross": "cross",  # of convolutions
        "decoder.readout.attention": "cross",
    }


def test_a_model_without_attention_has_nothing_to_record():
    assert record(recurrent({"attention": "none", "input_feeding": False}), SOURCE, TARGET) == []
    assert record(build_bytenet(ByteNetOptions(width=6), 11, 9, shared=False), SOURCE, TARGET) == []


def test_recording_leaves_the_model_as_it_was():
    model = transformer({}).train()
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    first, second = record(model, SOURCE, TARGET), record(model, SOURCE, TARGET)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.weights, other.weights)  # dropout slept
        assert not one.weights.requires_grad
    assert [module.training for module in model.modules()] == before
    assert not any(module._forward_hooks for module in model.modules())


class Pointing(nn.Module):
    """At token 2·k looks at position k alone, one step at a time, and stumbles at an odd token."""

    def weights(self, token, values):
        return torch.eye(values.shape[1])[token // 2].reshape(1, 1, 1, -1)

    def forward(self, token, values):
        if token % 2:
            raise RuntimeError("odd")
        return values.mean(1)


class OneHot(nn.Module):
    def forward(self, tokens, mask):
        values = nn.functional.one_hot(tokens, 12).float()
        return Memory(values, mask, no_summary(values))


class Stepwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = Pointing()

    def begin(self, memory):
        return memory

    def features(self, tokens, state):
        return torch.stack([self.look(int(token), values=state.values) for token in tokens[0]], 1), state

    def output(self, features):
        return features

    def forward(self, tokens, state):
        return self.features(tokens, state)


def test_calls_of_one_module_follow_each_other_down_the_rows():
    (attention,) = record(SequenceToSequence(OneHot(), Stepwise()), SOURCE, torch.tensor([[2, 8, 4]]))
    assert isinstance(attention, Attention)
    assert (attention.name, attention.kind, attention.layer) == ("decoder.look", "cross", 0)
    assert attention.weights.tolist() == [[[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]]


def test_a_model_that_fails_keeps_no_hook_and_its_mode():
    model = SequenceToSequence(OneHot(), Stepwise()).train()
    with pytest.raises(RuntimeError, match="odd"):
        record(model, SOURCE, TARGET)
    assert all(module.training for module in model.modules())
    assert not model.decoder.look._forward_hooks
