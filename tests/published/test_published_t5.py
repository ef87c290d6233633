"""A published T5 is a Transformer of ours: the same logits, the same words, and back without loss."""

import pytest
import safetensors.torch as safetensors
import torch
from published_twins import config_of, generations, logits, returned, roughen, sources, stored, twins

from regard.errors import ModelFormatError
from regard.layers.relations import buckets_both_ways, buckets_of_past
from regard.models.interface import parameters
from regard.published import t5
from regard.published.layout import to_ours, to_theirs
from regard.published.vocabulary import SILENT
from regard.recipe.inference import for_inference
from regard.text.special import BOS, EOS, PAD, UNK
from regard.training.tensors import weights

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 23, "d_model": 12, "d_kv": 5, "num_heads": 3, "d_ff": 7, "num_layers": 2}
VARIANTS = {
    "v1.0": {"num_decoder_layers": 3},
    "v1.1": {
        "feed_forward_proj": "gated-gelu",
        "scaled": False,
        "tied": False,
        "num_layers": 1,
        "num_decoder_layers": 2,
    },
    "gated by SiLU, few buckets, not scaled": {
        "feed_forward_proj": "gated-silu",
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20,
        "num_layers": 3,
        "num_decoder_layers": 1,
        "scaled": False,
    },
    "GELU, untied, another ε, heads of width / heads": {
        "feed_forward_proj": "gelu",
        "tied": False,
        "layer_norm_epsilon": 0.1,
        "d_kv": 4,
    },
}
START, END = 0, 1
LENGTHS = (150, 3, 0, 40)  # beyond the distance from which all share a bucket


def published(scaled=True, tied=True, **chosen):
    """The library ties every fresh T5, and takes `tie_word_embeddings` for the question of scale."""
    torch.manual_seed(3)
    config = transformers.T5Config(
        **(SIZES | {"decoder_start_token_id": START, "tie_word_embeddings": scaled} | chosen)
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    roughen(model)
    return model


@pytest.fixture(params=VARIANTS, scope="module")
def both(request):
    return twins(t5, published(**VARIANTS[request.param]))


@pytest.fixture(scope="module")
def plain():
    return twins(t5, published())


def test_logits_are_theirs_at_every_position_and_fillers_are_out_of_the_game(both):
    tokens, mask = sources(LENGTHS, 23, END, START)
    targets = torch.cat([torch.full((4, 1), START), torch.randint(2, 23, (4, 139))], 1)
    theirs, ours, filler = logits(both, tokens, mask, targets)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)
    assert theirs.std() > 0.1  # the comparison is not one of zeros
    assert (filler <= SILENT).all()


def test_greedy_outputs_are_theirs_token_by_token(both):
    tokens, mask = sources((6, 2, 0, 9, 1, 1, 1, 3, 4, 5), 23, END, START)
    theirs, ours = generations(both, both.ours, tokens, mask, 8)
    assert ours == theirs
    assert len(set(map(tuple, ours))) > 1  # not one answer to everything


def test_inference_is_left_to_the_model_itself(plain):
    assert for_inference(plain.options, plain.ours) is plain.ours


def test_back_and_forth_every_tensor_is_the_same_and_loads_into_a_fresh_model(both):
    before, back = stored(both.theirs), to_theirs(both.layout, weights(both.ours), "model")
    assert back.keys() == before.keys()
    for name, tensor in back.items():
        torch.testing.assert_close(tensor, before[name], rtol=1e-6, atol=0.0, msg=name)
    fresh = returned(both, back)
    tokens = torch.tensor([[4, 7, END]])
    with torch.no_grad():
        ours, theirs = (model(input_ids=tokens, decoder_input_ids=tokens).logits for model in (fresh, both.theirs))
    torch.testing.assert_close(ours, theirs)


def test_a_file_that_stores_a_tensor_once_is_read_as_well(both, tmp_path):
    both.theirs.save_pretrained(tmp_path)
    found = safetensors.load_file(tmp_path / "model.safetensors")
    assert len(found) < len(stored(both.theirs))
    layout = t5.layout(both.options, both.order, t5.held(config_of(both.theirs), found))
    ours = to_ours(layout, found, "checkpoint", t5.IGNORED, like=weights(both.ours))
    for name, tensor in weights(both.ours).items():
        assert torch.equal(ours[name], tensor), name


def test_a_new_checkpoint_stores_each_tensor_once_and_is_scaled_where_it_is_tied(both):
    before, back = stored(both.theirs), to_theirs(t5.layout(both.options, both.order), weights(both.ours), "model")
    tied, scaled = both.options.tie_output, both.theirs.config.scale_decoder_outputs
    assert back.keys() == before.keys() - set(t5.TABLES[1:]) - ({t5.HEAD} if tied else set())
    last = "decoder.final_layer_norm.weight"
    torch.testing.assert_close(back[last], before[last] * 12 ** (0.5 * (tied - scaled)))


def test_nothing_is_trained_twice_and_the_output_bias_that_is_ours_alone_is_not_trained(both):
    extra = both.options.width * (len(both.order) - 23) * (1 if both.options.tie_output else 2)
    assert parameters(both.ours) == parameters(both.theirs) + extra
    assert not both.ours.decoder.output.bias.requires_grad


def test_special_ids_stand_first_and_the_rest_keeps_its_order(plain):
    assert [plain.order[id] for id in (PAD, UNK, BOS, EOS)] == [-1, 2, 0, 1]
    assert plain.order[4:] == tuple(range(3, 23))


def test_another_start_of_the_decoder_is_ours_too():
    both = twins(t5, published(decoder_start_token_id=9, eos_token_id=5))
    assert both.order[:5] == (-1, 2, 9, 5, 0)
    tokens, mask = sources((3, 5), 23, 5, START)
    theirs, ours = generations(both, both.ours, tokens, mask, 6)
    assert ours == theirs


@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (64, 300)])
def test_distances_fall_into_their_buckets(buckets, farthest):
    distance = torch.arange(-400, 401)
    bucket = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    for both_ways, ours in ((True, buckets_both_ways), (False, buckets_of_past)):
        theirs = bucket(distance, bidirectional=both_ways, num_buckets=buckets, max_distance=farthest)
        assert torch.equal(ours(distance, buckets, farthest), theirs)


# ---------------------------------------------------------------- refusals
NAME = "decoder.block.1.layer.1.EncDecAttention.k.weight"


def changed(plain, **tensors):
    """Their tensors with some replaced, and those that are none left out."""
    return {name: x for name, x in (plain.theirs.state_dict() | tensors).items() if x is not None}


@pytest.mark.parametrize(
    ("name", "tensor", "words"),
    [
        (NAME, None, "checkpoint: no tensor 'decoder.block.1.layer.1.EncDecAttention.k.weight'"),
        ("decoder.block.2.layer.0.layer_norm.weight", torch.ones(12), "unknown tensor 'decoder.block.2.layer.0"),
        (NAME, torch.ones(15, 11), rf"tensor '{NAME}' is \(15, 11\), expected \(15, 12\)"),
        ("shared.weight", torch.ones(22, 12), r"tensor 'shared.weight' is \(22, 12\), expected \(23, 12\)"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(plain, name, tensor, words):
    found = changed(plain, **{name: tensor})
    with pytest.raises(ModelFormatError, match=words):
        to_ours(plain.layout, found, "checkpoint", t5.IGNORED, like=weights(plain.ours))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"feed_forward_proj": "gated-tanh"}, "feed_forward_proj: found 'gated-tanh', expected 'relu', 'gelu',"),
        ({"is_encoder_decoder": False}, "is_encoder_decoder: found False, expected True"),
        ({"model_type": "bart"}, "model_type: found 'bart', expected 't5'"),
        ({"d_model": None}, "d_model: found None, expected a valid integer"),
        ({"d_kv": "64"}, "d_kv: found '64', expected a valid integer"),
        ({"relative_attention_num_buckets": 3}, "relative_attention_num_buckets: found 3, expected greater than or"),
        ({"dropout_rate": 1.5}, "dropout_rate: found 1.5, expected less than 1"),
    ],
)
def test_a_config_that_is_none_of_ours_is_refused_by_key(plain, change, words):
    with pytest.raises(ModelFormatError, match=f"^config.json: {words}"):
        t5.options(config_of(plain.theirs) | change, {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"eos_token_id": 23},
            "found unknown, start and end token 2, 0 and 23, expected three ids below vocab_size 23",
        ),
        ({"eos_token_id": 0}, "found unknown, start and end token 2, 0 and 0"),
        ({"pad_token_id": [0]}, r"pad_token_id: found \[0\], expected a valid integer"),
    ],
)
def test_special_tokens_that_cannot_be_are_refused(plain, change, words):
    with pytest.raises(ModelFormatError, match=f"^config.json: {words}"):
        t5.order(config_of(plain.theirs) | change)


def test_an_order_that_names_a_token_twice_is_refused(plain):
    with pytest.raises(ModelFormatError, match="the tokeniser has 22 ids up to 21, 1 of them twice"):
        t5.layout(plain.options, (*plain.order[:-1], 4))


def test_a_copy_that_differs_is_refused(plain):
    found = changed(plain, **{"decoder.embed_tokens.weight": torch.zeros(23, 12)})
    with pytest.raises(ModelFormatError, match=r"'shared.weight', .*'decoder.embed_tokens.weight', .* differ"):
        to_ours(plain.layout, found, "checkpoint", t5.IGNORED)


def test_a_bias_of_older_files_that_nothing_reads_is_left_out(plain):
    name = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    found = to_ours(plain.layout, changed(plain, **{name: torch.ones(32, 3)}), "checkpoint", t5.IGNORED)
    assert found.keys() == weights(plain.ours).keys()
