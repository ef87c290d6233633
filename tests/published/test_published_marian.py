"""A published Marian is a Transformer of ours: the same logits, the same words, and back without loss."""

import pytest
import safetensors.torch as safetensors
import torch
from published_twins import config_of, generations, logits, returned, roughen, sources, stored, twins

from regard.errors import ModelFormatError
from regard.layers.positions import sinusoids_in_halves
from regard.models.swift import SwiftDecoder
from regard.native.inference import native
from regard.published import marian
from regard.published.layout import to_ours, to_theirs
from regard.published.vocabulary import SILENT
from regard.recipe.inference import for_inference
from regard.text.special import BOS, EOS, PAD, UNK
from regard.training.tensors import weights

transformers = pytest.importorskip("transformers")

VOCAB, START, END = 23, 22, 0
SIZES = {
    "vocab_size": VOCAB,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 7,
    "decoder_ffn_dim": 7,
    "max_position_embeddings": 48,
    "pad_token_id": START,
    "decoder_start_token_id": START,
    "forced_eos_token_id": None,
}
VARIANTS = {
    "OPUS-MT": {"activation_function": "swish", "scale_embedding": True},
    "deep encoder, shallow decoder": {"activation_function": "relu", "encoder_layers": 3, "decoder_layers": 1},
    "an embedding a side": {"share_encoder_decoder_embeddings": False, "scale_embedding": True},
    "nothing tied": {"tie_word_embeddings": False, "activation_function": "gelu_new", "encoder_layers": 1},
    "an embedding a side, untied": {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
}


def published(**chosen):
    torch.manual_seed(3)
    model = transformers.MarianMTModel(transformers.MarianConfig(**(SIZES | chosen))).eval()
    roughen(model)
    return model


@pytest.fixture(params=VARIANTS, scope="module")
def both(request):
    return twins(marian, published(**VARIANTS[request.param]))


@pytest.fixture(scope="module")
def plain():
    return twins(marian, published())


def test_logits_are_theirs_at_every_position_and_fillers_are_out_of_the_game(both):
    tokens, mask = sources((46, 3, 0, 20), VOCAB, END, START)
    targets = torch.cat([torch.full((4, 1), START), torch.randint(1, VOCAB, (4, 30))], 1)
    theirs, ours, filler = logits(both, tokens, mask, targets)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)
    assert theirs.std() > 0.1  # the comparison is not one of zeros
    assert (filler <= SILENT).all()


@pytest.mark.parametrize("swift", [False, True])
def test_greedy_outputs_are_theirs_token_by_token(both, swift):
    tokens, mask = sources((6, 2, 0, 9, 1, 1, 1, 3, 4, 5), VOCAB, END, START)
    model = for_inference(both.options, both.ours) if swift else both.ours
    assert isinstance(model.decoder, SwiftDecoder) == (swift and native is not None)
    theirs, ours = generations(both, model, tokens, mask, 8)
    assert ours == theirs
    assert len(set(map(tuple, ours))) > 1  # not one answer to everything


def test_back_and_forth_every_tensor_is_the_same_and_loads_into_a_fresh_model(both):
    before, back = stored(both.theirs), to_theirs(both.layout, weights(both.ours), "model")
    unread = {marian.SHARED} if not both.options.share_embeddings else set()
    assert back.keys() == before.keys() - unread
    for name, tensor in back.items():
        assert torch.equal(tensor, before[name]), name
    fresh = returned(both, {name: before[name] for name in before.keys() & unread} | back)
    tokens = torch.tensor([[4, 7, END]])
    with torch.no_grad():
        ours, theirs = (model(input_ids=tokens, decoder_input_ids=tokens).logits for model in (fresh, both.theirs))
    torch.testing.assert_close(ours, theirs)


def test_a_file_that_stores_a_tensor_once_is_read_as_well(both, tmp_path):
    both.theirs.save_pretrained(tmp_path)
    found = safetensors.load_file(tmp_path / "model.safetensors")
    layout = marian.layout(both.options, both.order, marian.held(config_of(both.theirs), found))
    ours = to_ours(layout, found, "checkpoint", marian.IGNORED, like=weights(both.ours))
    for name, tensor in weights(both.ours).items():
        assert torch.equal(ours[name], tensor), name


def test_a_new_checkpoint_stores_each_tensor_once(both, tmp_path):
    back = to_theirs(marian.layout(both.options, both.order), weights(both.ours), "model")
    both.theirs.save_pretrained(tmp_path)
    unread = {marian.SHARED} if not both.options.share_embeddings else set()
    assert back.keys() == safetensors.load_file(tmp_path / "model.safetensors").keys() - unread


def test_special_ids_stand_first_and_the_rest_keeps_its_order(plain):
    assert [plain.order[id] for id in (PAD, UNK, BOS, EOS)] == [-1, 1, START, END]
    assert plain.order[4:] == tuple(range(2, 22))


def test_positions_are_those_of_the_published_code(plain):
    theirs = plain.theirs.state_dict()["model.encoder.embed_positions.weight"]
    torch.testing.assert_close(sinusoids_in_halves(48, 12, 10_000.0).float(), theirs)


def test_an_output_layer_that_is_stored_decides_whether_it_is_tied(plain):
    found, config = stored(plain.theirs), config_of(plain.theirs)
    assert marian.options(config, found).tie_output
    assert not marian.options(config, found | {marian.HEAD: torch.zeros(VOCAB, 12)}).tie_output
    assert not marian.options(config, found | {marian.SOURCE: torch.zeros(VOCAB, 12)}).share_embeddings


# ---------------------------------------------------------------- refusals
NAME = "model.decoder.layers.1.encoder_attn.k_proj.bias"


@pytest.mark.parametrize(
    ("name", "tensor", "words"),
    [
        (NAME, None, f"checkpoint: no tensor '{NAME}'"),
        ("final_logits_bias", None, "checkpoint: no tensor 'final_logits_bias'"),
        ("model.encoder.layer_norm.weight", torch.ones(12), "unknown tensor 'model.encoder.layer_norm.weight'"),
        (NAME, torch.ones(11), rf"tensor '{NAME}' is \(11,\), expected \(12,\)"),
        ("final_logits_bias", torch.ones(VOCAB), r"tensor 'final_logits_bias' is \(23,\), expected \(1, 23\)"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(plain, name, tensor, words):
    found = {key: x for key, x in (plain.theirs.state_dict() | {name: tensor}).items() if x is not None}
    with pytest.raises(ModelFormatError, match=words):
        to_ours(plain.layout, found, "checkpoint", marian.IGNORED, like=weights(plain.ours))


def test_a_bias_of_another_form_is_refused_by_name_without_a_model_to_compare_with(plain):
    found = plain.theirs.state_dict() | {"final_logits_bias": torch.ones(VOCAB)}
    with pytest.raises(ModelFormatError, match=r"tensor 'final_logits_bias' is \(23,\), expected one row"):
        to_ours(plain.layout, found, "checkpoint", marian.IGNORED)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"normalize_before": True}, "normalize_before: found True, expected False"),
        ({"normalize_embedding": True}, "normalize_embedding: found True, expected False"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm: found True, expected False"),
        ({"static_position_embeddings": False}, "static_position_embeddings: found False, expected True"),
        ({"activation_function": "mish"}, "activation_function: found 'mish', expected 'relu', 'gelu',"),
        ({"decoder_ffn_dim": 8}, "decoder_ffn_dim: found 8, expected 7 as encoder_ffn_dim"),
        ({"decoder_attention_heads": 2}, "decoder_attention_heads: found 2, expected 3 as encoder_attention_heads"),
        ({"decoder_vocab_size": 24}, "decoder_vocab_size: found 24, expected 23 as vocab_size"),
        ({"encoder_attention_heads": 5}, "encoder_attention_heads: found 5, expected a divisor of the width 12"),
        ({"encoder_layers": 0}, "encoder_layers: found 0, expected greater than 0"),
    ],
)
def test_a_config_that_is_none_of_ours_is_refused_by_key(plain, change, words):
    with pytest.raises(ModelFormatError, match=f"^config.json: {words}"):
        marian.options(config_of(plain.theirs) | change, {})


def test_a_key_that_is_missing_is_named(plain):
    config = {key: value for key, value in config_of(plain.theirs).items() if key != "d_model"}
    with pytest.raises(ModelFormatError, match=r"^config.json: d_model: missing"):
        marian.options(config, {})


def test_special_tokens_that_cannot_be_are_refused(plain):
    with pytest.raises(ModelFormatError, match="found unknown, start and end token 1, 23 and 0, expected three ids"):
        marian.order(config_of(plain.theirs) | {"decoder_start_token_id": VOCAB})
