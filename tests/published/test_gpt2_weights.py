"""GPT-2 of ours against that of transformers, with weights that go there and back."""

import pytest
import torch
from published_models import as_read, gpt, in_ours, load, ordered, real, scrambled

from regard.errors import ModelFormatError
from regard.published import gpt2
from regard.published.layout import to_ours, to_theirs
from regard.text.special import EOS

transformers = pytest.importorskip("transformers")

VOCAB, THEIR_EOS = 13, 5
SMALL = {"vocab_size": VOCAB, "n_embd": 6, "n_head": 2, "n_layer": 2, "n_positions": 17, "eos_token_id": THEIR_EOS}
CONFIGS = {
    "tied": {},
    "untied": {"tie_word_embeddings": False},
    "one head, one layer, wide inside": {"n_head": 1, "n_layer": 1, "n_inner": 11, "n_embd": 5},
    "three layers, gelu, large epsilon": {"n_layer": 3, "activation_function": "gelu", "layer_norm_epsilon": 0.1},
    "untied, relu": {"tie_word_embeddings": False, "activation_function": "relu", "n_head": 3},
}
ORDER = ordered(VOCAB, [-1, -1, -1, THEIR_EOS])
TOKENS = torch.tensor([[3, 12, 0, 7, 7, 1], [4, 0, 9, 2, 2, 2], [11, 5, 5, 5, 5, 5]])
LENGTHS = [6, 3, 1]


@pytest.fixture(params=CONFIGS, scope="module")
def theirs(request):
    config = transformers.GPT2Config(**(SMALL | CONFIGS[request.param]))
    return scrambled(transformers.GPT2LMHeadModel(config))


@pytest.fixture(scope="module")
def layout(theirs):
    return gpt2.layout(gpt2.sizes(as_read(theirs.config)), ORDER, gpt2.held(theirs.state_dict()))


@pytest.fixture(scope="module")
def ours(theirs, layout):
    model = gpt(gpt2.sizes(as_read(theirs.config)), len(ORDER))
    load(model, to_ours(layout, theirs.state_dict(), "gpt2", like=model.state_dict()))
    return model


@torch.no_grad()
def test_logits_are_theirs_at_every_real_position(theirs, ours):
    mask = torch.arange(6) < torch.tensor(LENGTHS)[:, None]
    expected = theirs(input_ids=TOKENS, attention_mask=mask.long()).logits
    tokens = in_ours(TOKENS, ORDER).masked_fill(~mask, 0)
    logits = ours(tokens[:, :2], mask[:, :2], tokens)
    here, there = real(ORDER)
    torch.testing.assert_close(logits[mask][:, here], expected[mask][:, there], rtol=0, atol=1e-4)


@torch.no_grad()
def test_ids_that_they_do_not_have_have_no_probability(ours):
    tokens = in_ours(TOKENS, ORDER)
    probabilities = ours(tokens, torch.ones_like(tokens, dtype=torch.bool), tokens).softmax(-1)
    assert (probabilities[..., :3] == 0).all()
    assert probabilities.isfinite().all()


@torch.no_grad()
def greedy(model, prompt, steps):
    """A plain loop over begin, features and output, without the prompt; it ends after the end token."""
    none = torch.zeros(1, 0, dtype=torch.long)
    state, tokens, written = model.decoder.begin(model.encode(none, none.bool())), prompt, []
    while len(written) < steps and EOS not in written:
        features, state = model.decoder.features(tokens, state)
        tokens = model.decoder.output(features[:, -1:]).argmax(-1)
        written.append(int(tokens))
    return written


@pytest.mark.parametrize("prompt", [[3], [12, 0, 7], [4, 4, 9, 1, 8, 10, 2]])
def test_greedy_generation_is_theirs_token_by_token(theirs, ours, prompt):
    prompt = torch.tensor([prompt])
    generated = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=9, pad_token_id=0
    )
    expected = in_ours(generated[0, prompt.shape[1] :], ORDER).tolist()
    assert greedy(ours, in_ours(prompt, ORDER), 9) == expected


def test_there_and_back_is_the_same_tensor_by_tensor(theirs, ours, layout):
    found = to_theirs(layout, to_ours(layout, theirs.state_dict(), "gpt2"), "ours")
    torch.testing.assert_close(found, dict(theirs.state_dict()), rtol=0, atol=0)


@torch.no_grad()
def test_what_goes_back_loads_strictly_and_says_the_same(theirs, ours, layout):
    names = {entry.ours for entry in layout}
    tensors = {name: tensor for name, tensor in ours.state_dict().items() if name in names}
    fresh = transformers.GPT2LMHeadModel(theirs.config).eval()
    fresh.load_state_dict(to_theirs(layout, tensors, "ours"), strict=True)
    torch.testing.assert_close(fresh(TOKENS).logits, theirs(TOKENS).logits, rtol=0, atol=0)


def test_a_file_of_the_model_without_its_head_holds_the_same(theirs):
    """As the first published files do: no prefix, no head, and causal masks among the weights."""
    inside = dict(theirs.transformer.state_dict()) | {"h.0.attn.bias": torch.ones(1, 1, 17, 17, dtype=torch.bool)}
    sizes = gpt2.sizes(as_read(theirs.config))
    layout = gpt2.layout(sizes, ORDER, gpt2.held(inside))
    if not sizes.tied:
        with pytest.raises(ModelFormatError, match=r"no tensor 'lm_head.weight'"):
            to_ours(layout, inside, "gpt2", gpt2.IGNORED)
        return
    whole = gpt2.layout(sizes, ORDER, gpt2.held(theirs.state_dict()))
    torch.testing.assert_close(
        to_ours(layout, inside, "gpt2", gpt2.IGNORED), to_ours(whole, theirs.state_dict(), "gpt2")
    )


# ---------------------------------------------------------------- bad input
CONFIG = SMALL | {"model_type": "gpt2"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx: found True, expected False"),
        ({"scale_attn_weights": False}, "scale_attn_weights: found False, expected True"),
        ({"add_cross_attention": True}, "add_cross_attention: found True"),
        ({"activation_function": "mish"}, "activation_function: found 'mish', expected 'relu', 'gelu', 'gelu_new'"),
        ({"model_type": "opt"}, "model_type: found 'opt', expected 'gpt2'"),
        ({"n_head": 4}, "n_head: found 4, expected a divisor of the width 6"),
        ({"n_layer": 10**9}, "n_layer: found 1000000000, expected less than or equal to 1000"),
        ({"n_layer": True}, "n_layer: found True, expected a valid integer"),
        ({"n_embd": "6"}, "n_embd: found '6', expected a valid integer"),
        ({"resid_pdrop": 1.0}, "resid_pdrop: found 1.0"),
    ],
)
def test_a_config_that_cannot_be_is_refused_by_name(change, message):
    with pytest.raises(ModelFormatError, match=message):
        gpt2.sizes(CONFIG | change)


def test_a_missing_size_is_refused_by_name():
    with pytest.raises(ModelFormatError, match="n_embd: missing"):
        gpt2.sizes({name: value for name, value in CONFIG.items() if name != "n_embd"})


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (ordered(VOCAB - 1, [-1, -1, -1, 5]), "vocab_size: found 13, but the tokeniser has 12 ids up to 11"),
        ((*ORDER[:-1], 3), "1 of them twice"),
        (ordered(VOCAB + 1, [-1, -1, -1, 5]), "14 ids up to 13"),
    ],
)
def test_a_vocabulary_of_another_model_is_refused(order, message):
    with pytest.raises(ModelFormatError, match=message):
        gpt2.layout(gpt2.sizes(CONFIG), order, gpt2.Held("", head=False))


def test_wrong_sizes_missing_and_unknown_tensors_are_refused_by_their_name(theirs, ours, layout):
    tensors = dict(theirs.state_dict())
    name = "transformer.h.0.mlp.c_fc.weight"
    for bad in (tensors[name][:, :-1], tensors[name][:-1], tensors[name][0]):
        with pytest.raises(ModelFormatError, match=rf"^m: tensor '{name}' is \("):
            to_ours(layout, tensors | {name: bad}, "m", like=ours.state_dict())
    with pytest.raises(ModelFormatError, match=f"^m: no tensor '{name}'; "):
        to_ours(layout, {key: value for key, value in tensors.items() if key != name}, "m")
    with pytest.raises(ModelFormatError, match=r"^m: unknown tensor 'score.weight'; "):
        to_ours(layout, tensors | {"score.weight": torch.zeros(2, 6)}, "m")
