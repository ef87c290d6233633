"""Attention taken through encoder and decoder: the same as through one long sequence, and as gradients held by hand."""

import pytest
import torch

from regard.errors import DecodingError
from regard.explaining.explain import Output, explain_output
from regard.explaining.leaving_out import Written
from regard.explaining.rollout import relevance, rollout
from regard.explaining.sides import given, special
from regard.explaining.text_maps import (
    attention_map,
    available,
    flow,
    gradient_map,
    layers_of,
    refuse_missing,
    relevances,
    rollout_map,
)
from regard.explaining.view import Which, view
from regard.recipe import build as building
from regard.recipe.build_gpt import build_gpt
from regard.recipe.models import ConvS2SOptions, GptOptions, RecurrentOptions, TransformerOptions
from regard.text.characters import Characters
from regard.text.special import BOS, EOS

SOURCE, TARGET = Characters(list("abcd .")), Characters(list("ABC D"))
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "dropout": 0.0}
FAMILIES = {
    "transformer": TransformerOptions(**SIZES, encoder_layers=1, decoder_layers=2),
    "linear": TransformerOptions(**SIZES, encoder_layers=2, decoder_layers=1, attention="linear"),
    "gru": RecurrentOptions(embedding=5, width=6, dropout=0.0),
    "convs2s": ConvS2SOptions(width=6, encoder_layers=2, decoder_layers=2, max_length=24, dropout=0.0),
    "plain": RecurrentOptions(embedding=5, width=6, dropout=0.0, attention="none", input_feeding=False),
}
WRITTEN = Written((*SOURCE.encode("ab d."), EOS), BOS, (*TARGET.encode("AB C"), EOS))


def stirred(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return model.double().eval()


def built(name):
    return stirred(building.build(FAMILIES[name], len(SOURCE), len(TARGET), shared=False, seed=1))


def explained(model):
    output = Output("tiny", given(SOURCE, "ab d.", after=(EOS,)), special(BOS, 0), given(TARGET, "AB C", after=(EOS,)))
    return explain_output(model, output, TARGET, 2)


def language_model():
    return stirred(build_gpt(GptOptions(**SIZES, layers=2, max_length=9), len(TARGET)))


def read_by(model):
    return explain_output(model, Output("bard", None, special(EOS, 0), given(TARGET, "AB C")), TARGET, 2)


# ---------------------------------------------------------------- one long sequence
def joined(encoder, decoder, cross):
    """The stack over [target; source] in which each layer moves what it moves, and all else looks at itself."""
    t, s = cross.shape[-2:]
    stack = []
    for own in encoder:
        stack.append(torch.block_diag(torch.eye(t).double(), own))
    for own, across in zip(decoder, cross, strict=True):
        stack.append(torch.block_diag(own, torch.eye(s).double()))
        stack.append(torch.block_diag(torch.zeros(t, t).double(), torch.eye(s).double()))
        stack[-1][:t, t:] = across
    return torch.stack(stack)[:, None]


def some_weights():
    torch.manual_seed(4)
    encoder, decoder, cross = (torch.randn(size).double().softmax(-1) for size in ((2, 4, 4), (3, 3, 3), (3, 3, 4)))
    return encoder, decoder, cross


def test_flow_is_the_rollout_of_target_and_source_as_one_sequence():
    found, whole = flow(*some_weights()), rollout(joined(*some_weights()))
    torch.testing.assert_close(found.source, whole[:3, 3:])
    torch.testing.assert_close(found.previous, whole[:3, :3])
    torch.testing.assert_close(found.source.sum(1) + found.previous.sum(1), torch.ones(3).double())


def test_flow_of_one_layer_by_hand():
    """E = ½ (A + I) = [[¾, ¼], [0, 1]] for A = [[½, ½], [0, 1]], and Ã = [[1, 0], [½, ½]] for [[1, 0], [1, 0]]."""
    encoder = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]])
    decoder = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    cross = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
    found = flow(encoder, decoder, cross)
    torch.testing.assert_close(found.source, torch.tensor([[0.75, 0.25], [0.375, 0.625]]) / 2)
    torch.testing.assert_close(found.previous, torch.tensor([[1.0, 0.0], [0.5, 0.5]]) / 2)


def test_relevances_are_those_of_target_and_source_as_one_sequence():
    """Here what looks at itself has no weight: R begins with it."""
    encoder, decoder, cross = some_weights()
    stack = joined(encoder, decoder, cross)
    stack[: len(encoder), :, :3] = 0
    stack[len(encoder) :, :, 3:] = 0
    whole = relevance(stack, torch.ones_like(stack))
    layers = {"encoder": list(encoder[:, None]), "decoder": list(decoder[:, None]), "cross": list(cross[:, None])}
    across, read = relevances(layers, 4, 3)
    torch.testing.assert_close(across[0], whole[:3, 3:])
    torch.testing.assert_close(read[0], whole[:3, :3])


# ---------------------------------------------------------------- models
def test_rollout_of_a_model_goes_by_the_mean_over_heads():
    found = explained(built("transformer"))
    heads = {}
    for block in found.attention:
        heads.setdefault((block.kind, block.layer), []).append(torch.tensor(block.weights, dtype=torch.float64))
    means = {key: sum(each) / 3 for key, each in heads.items()}
    assert [kind for kind, _ in means] == ["encoder", "decoder", "cross", "decoder", "cross"]
    encoder = torch.stack([means["encoder", 1]])
    decoder, cross = (torch.stack([means[kind, 1], means[kind, 2]]) for kind in ("decoder", "cross"))
    expected = rollout(joined(encoder, decoder, cross))
    torch.testing.assert_close(rollout_map(found).source, expected[:5, 5:])
    torch.testing.assert_close(layers_of(found, "decoder"), decoder)


def test_attention_is_the_layer_that_the_view_shows():
    found = explained(built("transformer"))
    torch.testing.assert_close(attention_map(found).source, view(found, Which("cross")).weights)
    assert attention_map(found).previous is None


def held(model, written, t):
    """Ā of every module for log p(target_t), from weights that take part in the product and keep their gradients."""
    kept = {}

    def plain(name):
        def hook(module, inputs, output):
            weights = module.weights(*inputs)
            weights.retain_grad()
            kept.setdefault(name, []).append(weights)
            if isinstance(output, tuple):
                return weights[:, 0] @ inputs[1].values, output[1]
            return weights @ inputs[1].values

        return hook

    names = [name for name, module in model.named_modules() if callable(getattr(module, "weights", None))]
    handles = [model.get_submodule(name).register_forward_hook(plain(name)) for name in names]
    source = torch.tensor([written.source], dtype=torch.long)
    logits = model(source, source >= 0, torch.tensor([[written.start, *written.target[:-1]]]))
    logits[0, t].log_softmax(-1)[written.target[t]].backward()
    for handle in handles:
        handle.remove()
    model.zero_grad()
    found = {}
    for name, each in kept.items():
        weights = torch.cat([one.detach() for one in each], 2)
        slopes = torch.cat([torch.zeros_like(one) if one.grad is None else one.grad for one in each], 2)
        found[name] = (weights * slopes).clamp(min=0).mean(1)[0]
    return found


@pytest.mark.parametrize("name", ["transformer", "linear", "gru", "convs2s"])
def test_gradients_are_those_of_a_model_that_holds_its_weights_token_by_token(name):
    model, written = built(name), WRITTEN
    found = gradient_map(model, written)
    for t in range(len(written.target)):
        layers = held(model, written, t)
        own, read = torch.eye(6).double(), torch.eye(5).double()
        across = torch.zeros(5, 6).double()
        for path, layer in layers.items():
            if path.startswith("encoder"):
                own = own + layer @ own
            elif layer.shape == (5, 5):
                read, across = read + layer @ read, across + layer @ across
            else:
                across = across + layer @ own
        torch.testing.assert_close(found.source[t], across[t])
        torch.testing.assert_close(found.previous[t], read[t])
    assert found.source.abs().max() > 1e-4


def test_more_tokens_than_fit_a_batch_change_nothing(monkeypatch):
    model = built("transformer")
    whole = gradient_map(model, WRITTEN)
    monkeypatch.setattr("regard.explaining.text_maps.BATCH_TOKENS", 22)  # two rows of eleven tokens
    torch.testing.assert_close(gradient_map(model, WRITTEN).source, whole.source)


def test_a_language_model_has_maps_of_what_was_read():
    model = language_model()
    found, written = read_by(model), Written((), EOS, tuple(TARGET.encode("AB C")))
    stack = layers_of(found, "decoder")
    torch.testing.assert_close(rollout_map(found).previous, rollout(stack[:, None]))
    torch.testing.assert_close(attention_map(found).previous, stack[-1])
    slopes = gradient_map(model, written)
    read = torch.eye(4).double()
    for layer in held(model, written, 3).values():
        read = read + layer @ read
    torch.testing.assert_close(slopes.previous[3], read[3])
    for one in (rollout_map(found), attention_map(found), slopes):
        assert one.source.shape == (4, 0)
        assert not one.previous.triu(1).any()


def test_nothing_is_left_behind():
    model = built("gru")
    gradient_map(model, WRITTEN)
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


# ---------------------------------------------------------------- who can tell what
@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("transformer", ("rise", "attention", "rollout", "gradient")),
        ("gru", ("rise", "attention", "gradient")),
        ("convs2s", ("rise", "attention", "gradient")),
        ("plain", ("rise",)),
    ],
)
def test_a_family_offers_what_it_has(name, methods):
    found = explained(built(name))
    assert available(found) == methods
    for method in ("attention", "rollout", "gradient"):
        if method in methods:
            refuse_missing(found, [method])
        else:
            with pytest.raises(DecodingError, match=f"^map {method}: tiny .*; ask for .*rise"):
                refuse_missing(found, [method])
