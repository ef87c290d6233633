"""Where an image classifier looks: the exact weights of its class token, and a picture that holds the image."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from regard.data.image_lexicon import ImageLexicon
from regard.data.pixels import Normalisation
from regard.explaining.image_map import attention_svg, class_attention, png
from regard.layers.relations import Relative
from regard.recipe.build_vit import build_vit
from regard.recipe.models import VitOptions


@pytest.fixture(scope="module")
def model():
    colours = Normalisation(mean=(0.0,) * 3, std=(1.0,) * 3)
    lexicon = ImageLexicon(size=(6, 9), channels=3, normalisation=colours, labels=("a", "b"))
    options = VitOptions(width=8, heads=2, feedforward=12, layers=3, patch=3)
    return build_vit(options, lexicon, seed=4).double().eval()


def test_the_map_is_the_softmax_of_the_last_layers_class_token(model):
    torch.manual_seed(1)
    image = torch.randn(1, 3, 6, 9).double()
    x = model.encoder.entrance(image)
    for layer in model.encoder.layers[:-1]:
        x = layer(x, None, Relative())
    last = model.encoder.layers[-1]
    q, k, _ = last.attention.packed(last.around_attention.norm(x)).unflatten(-1, (3, 2, 4)).unbind(-3)
    found = class_attention(model, image)
    for head in range(2):
        scores = torch.stack([q[0, 0, head] @ k[0, j, head] for j in range(7)]) / 2  # √4
        expected = scores.softmax(0)[1:].reshape(2, 3)  # rows and columns of patches
        torch.testing.assert_close(found[head], expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_file_holds_the_pixels(channels):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(1).integers(256, size=(channels, 4, 7), dtype=np.uint8)
    read = np.atleast_3d(np.asarray(image.open(io.BytesIO(png(pixels))))).transpose(2, 0, 1)
    assert (read == pixels).all()


def test_the_picture_shows_the_image_and_every_head_and_stays_text():
    pixels = np.arange(6 * 9, dtype=np.uint8).reshape(1, 6, 9)
    weights = torch.tensor([[[0.5, 0.0], [0.0, 0.0]], [[0.0, 0.1], [0.1, 0.0]]])
    drawn = attention_svg(pixels, weights, "seen: <b>")
    root = ElementTree.fromstring(drawn)
    captions = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert captions == ["seen: <b>", "head 1: 0 to 0.50", "head 2: 0 to 0.10"]
    address = re.search(r'href="data:image/png;base64,([^"]+)"', drawn)[1]
    assert base64.b64decode(address) == png(pixels)
    cells = ["".join(path.get("d") for path in group.iter("{http://www.w3.org/2000/svg}path")) for group in root]
    assert cells == ["", "M0 0h1v1h-1z", "M1 0h1v1h-1zM0 1h1v1h-1z"]
