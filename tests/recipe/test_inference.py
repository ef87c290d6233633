"""Which models are run by their twins, made for inference, and which run themselves."""

import pytest

from regard.models.swift import SwiftDecoder
from regard.models.swift_encoder import SwiftEncoder
from regard.native.inference import native
from regard.recipe.build_recurrent import build_recurrent
from regard.recipe.build_transformer import build_transformer
from regard.recipe.inference import for_inference
from regard.recipe.models import RecurrentOptions, TransformerOptions

VOCAB = 11
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "encoder_layers": 1, "decoder_layers": 2}
VARIANTS = {
    "plain": {},
    "post-norm, GELU": {"order": "post", "activation": "gelu", "positions": "learned"},
    "wide heads": {"head_width": 6, "tie_output": False},
    "rotary": {"positions": "rotary"},
    "no positions": {"positions": "none"},
    "no biases, another ε": {"bias": False, "norm_epsilon": 1e-6},
    "SiLU, sinusoids in halves": {"activation": "silu", "positions": "sinusoid-halves"},
    "tanh GELU, a bias on the tied output": {"activation": "gelu-tanh", "output_bias": True},
}
OTHERS = {
    "window": {"attention": "window"},
    "linear": {"attention": "linear"},
    "RMS": {"norm": "rms"},
    "ε outside the root": {"norm": "layer-outside"},
    "gated": {"activation": "swiglu"},
    "gated by the tanh form": {"activation": "geglu-tanh"},
    "experts": {"experts": 3},
    "relative bias": {"positions": "relative"},
    "ALiBi": {"positions": "alibi"},
}


@pytest.mark.skipif(native is None, reason="needs the compiled part of regard, and so a C compiler")
@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_of_this_table_is_run_by_its_twin(name):
    options = TransformerOptions(**(SIZES | VARIANTS[name]))
    model = build_transformer(options, VOCAB, VOCAB, True)
    twin = for_inference(options, model)
    assert isinstance(twin.decoder, SwiftDecoder)
    assert isinstance(twin.encoder, SwiftEncoder)


@pytest.mark.parametrize("name", OTHERS)
def test_what_the_twin_cannot_do_is_left_to_the_reference(name):
    options = TransformerOptions(**(SIZES | OTHERS[name]))
    model = build_transformer(options, VOCAB, VOCAB, True)
    assert for_inference(options, model) is model


def test_what_the_compiled_part_cannot_read_is_left_to_the_reference():
    options = TransformerOptions(**SIZES)
    model = build_transformer(options, VOCAB, VOCAB, True).double()
    assert for_inference(options, model) is model


def test_without_the_compiled_part_the_model_speaks_for_itself(monkeypatch):
    monkeypatch.setattr("regard.recipe.inference.native", None)
    options = TransformerOptions(**SIZES)
    model = build_transformer(options, VOCAB, VOCAB, True)
    assert for_inference(options, model) is model


def test_a_recurrent_model_is_left_as_it_is():
    options = RecurrentOptions(width=4, embedding=5)
    model = build_recurrent(options, VOCAB, VOCAB, True)
    assert for_inference(options, model) is model
