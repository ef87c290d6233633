"""ViT of ours against that of transformers, with weights that go to disk, there and back."""

import pytest
import torch
from published_models import image_classifier, load, scrambled, vit_encoder
from torch import nn

from regard.errors import ModelFormatError
from regard.models.bert import Pooler
from regard.published import vit
from regard.published.checkpoint import read_checkpoint
from regard.published.layout import to_ours, to_theirs
from regard.training.tensors import write_tensors

transformers = pytest.importorskip("transformers")

SMALL = {
    "image_size": 12,
    "patch_size": 3,
    "num_channels": 2,
    "hidden_size": 6,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 9,
    "num_labels": 5,
}
CONFIGS = {
    "square": {},
    "one layer, one channel, no biases of queries": {"num_hidden_layers": 1, "num_channels": 1, "qkv_bias": False},
    "not square": {"image_size": [6, 15]},
    "odd width, large patches": {"hidden_size": 5, "num_attention_heads": 1, "patch_size": 4, "hidden_act": "gelu_new"},
    "large epsilon": {"layer_norm_eps": 0.1, "num_attention_heads": 3, "hidden_act": "relu"},
}


@pytest.fixture(params=CONFIGS, scope="module")
def config(request):
    return transformers.ViTConfig(**(SMALL | CONFIGS[request.param]))


def images(config, height=None, width=None):
    torch.manual_seed(3)
    image = config.image_size if isinstance(config.image_size, list | tuple) else [config.image_size] * 2
    return torch.randn(3, config.num_channels, height or image[0], width or image[1])


def saved(model, folder):
    """What their file holds: its names are older than those of their model in memory."""
    model.save_pretrained(folder)
    return read_checkpoint(folder)


def check_round_trip(theirs, checkpoint, layout, ours, folder):
    """What goes back is what came; they load it without a word and say the same."""
    names = {entry.ours for entry in layout}
    found = to_theirs(layout, {name: x for name, x in ours.state_dict().items() if name in names}, "ours")
    torch.testing.assert_close(found, checkpoint.tensors, rtol=0, atol=0)
    theirs.config.save_pretrained(folder)
    write_tensors(folder / "model.safetensors", found)
    fresh, report = type(theirs).from_pretrained(folder, output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    pixels = images(theirs.config)
    torch.testing.assert_close(fresh.eval()(pixels)[0], theirs(pixels)[0], rtol=0, atol=0)


@torch.no_grad()
def test_classes_are_theirs_and_go_back(config, tmp_path):
    theirs = scrambled(transformers.ViTForImageClassification(config))
    checkpoint = saved(theirs, tmp_path / "theirs")
    sizes = vit.sizes(checkpoint.config)
    ours, layout = image_classifier(sizes), vit.layout(sizes, vit.held(checkpoint.tensors))
    load(ours, to_ours(layout, checkpoint.tensors, "vit", like=ours.state_dict()))
    pixels = images(config)
    torch.testing.assert_close(ours(pixels), theirs(pixels).logits, rtol=0, atol=1e-4)
    check_round_trip(theirs, checkpoint, layout, ours, tmp_path / "back")


@torch.no_grad()
def test_features_and_the_pooled_vector_are_theirs_and_go_back(config, tmp_path):
    theirs = scrambled(transformers.ViTModel(config))
    checkpoint = saved(theirs, tmp_path / "theirs")
    sizes = vit.sizes(checkpoint.config)
    layout = vit.layout(sizes, vit.held(checkpoint.tensors))
    ours = nn.ModuleDict({"encoder": vit_encoder(sizes), "pooler": Pooler(sizes.width, sizes.width)}).eval()
    load(ours, to_ours(layout, checkpoint.tensors, "vit", like=ours.state_dict()))
    features, expected = ours["encoder"](images(config)), theirs(images(config))
    torch.testing.assert_close(features, expected.last_hidden_state, rtol=0, atol=1e-4)
    torch.testing.assert_close(ours["pooler"](features), expected.pooler_output, rtol=0, atol=1e-4)
    check_round_trip(theirs, checkpoint, layout, ours, tmp_path / "back")


@torch.no_grad()
@pytest.mark.parametrize(("height", "width"), [(12, 12), (12, 24), (9, 15), (3, 6), (21, 21)])
def test_images_of_another_size_are_seen_as_they_see_them(height, width, tmp_path):
    config = transformers.ViTConfig(**SMALL)
    theirs = scrambled(transformers.ViTForImageClassification(config))
    checkpoint = saved(theirs, tmp_path)
    sizes = vit.sizes(checkpoint.config)
    ours = image_classifier(sizes)
    load(ours, to_ours(vit.layout(sizes, vit.held(checkpoint.tensors)), checkpoint.tensors, "vit"))
    pixels = images(config, height, width)
    expected = theirs(pixels, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(ours(pixels), expected, rtol=0, atol=1e-4)


# ---------------------------------------------------------------- bad input
CONFIG = SMALL | {"model_type": "vit"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_size": 13}, "found image_size 13 × 13 and patch_size 3 × 3, expected square patches that divide"),
        ({"image_size": [12, 13]}, "found image_size 12 × 13"),
        ({"patch_size": [3, 4]}, "patch_size 3 × 4, expected square"),
        ({"image_size": [12, 12, 12]}, "image_size"),
        ({"pooler_act": "relu"}, "pooler_act: found 'relu', expected 'tanh'"),
        ({"num_attention_heads": 4}, "num_attention_heads: found 4, expected a divisor of the width 6"),
        ({"model_type": "deit"}, "model_type: found 'deit', expected 'vit'"),
    ],
)
def test_a_config_that_cannot_be_is_refused_by_name(change, message):
    with pytest.raises(ModelFormatError, match=message):
        vit.sizes(CONFIG | change)


def test_wrong_sizes_are_refused_by_their_name():
    sizes = vit.sizes(CONFIG)
    layout = vit.layout(sizes, vit.Held("vit.", pooler=False, classifier=True))
    ours = dict(image_classifier(sizes).state_dict())
    tensors = to_theirs(layout, ours, "ours")
    bad = tensors | {"vit.embeddings.position_embeddings": torch.zeros(1, 5, 6)}
    with pytest.raises(
        ModelFormatError, match=r"'vit.embeddings.position_embeddings' is \(1, 5, 6\), expected \(1, 17, 6\)"
    ):
        to_ours(layout, bad, "m")
    bad = tensors | {"vit.encoder.layer.1.attention.attention.key.weight": torch.zeros(6, 5)}
    with pytest.raises(
        ModelFormatError, match=r"key.weight', .*value.weight' are \(6, 5\), \(6, 6\), expected 3 of one"
    ):
        to_ours(layout, bad, "m")
    with pytest.raises(ModelFormatError, match=r"tensor '[a-z.0-9]*key.weight' is \(6, 5\), expected \(6, 6\)"):
        to_ours(layout, bad, "m", like=ours)
