"""What an image classifier depends on: maps from exact weights over its patches, and a picture with the image in it."""

import base64
import copy
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from regard.data.image_lexicon import ImageLexicon
from regard.data.pixels import Normalisation
from regard.explaining.image_map import class_attention, gradient_map, map_svg, over_pixels, png, rollout_map
from regard.explaining.image_map_png import COVER, LINE, SIDE, covered, map_png
from regard.layers.relations import Relative
from regard.recipe.build_vit import build_vit
from regard.recipe.models import VitOptions


@pytest.fixture(scope="module")
def model():
    colours = Normalisation(mean=(0.0,) * 3, std=(1.0,) * 3)
    lexicon = ImageLexicon(size=(6, 9), channels=3, normalisation=colours, labels=("a", "b"))
    options = VitOptions(width=8, heads=2, feedforward=12, layers=3, patch=3)
    return build_vit(options, lexicon, seed=4).double().eval()


IMAGE = torch.randn(1, 3, 6, 9, generator=torch.Generator().manual_seed(1)).double()


def plain_weights(model):
    """A[layer][head][query, key] by plain products, in the order of the model."""
    x, found = model.encoder.entrance(IMAGE), []
    for layer in model.encoder.layers:
        q, k, _ = layer.attention.packed(layer.around_attention.norm(x)).unflatten(-1, (3, 2, 4)).unbind(-3)
        found.append([(q[0, :, head] @ k[0, :, head].T / 2).softmax(-1) for head in range(2)])  # √4
        x = layer(x, None, Relative())
    return found


@torch.no_grad()
def test_the_map_of_a_layer_is_the_softmax_of_its_class_token(model):
    found = class_attention(model, IMAGE)
    assert found.shape == (3, 2, 2, 3)  # layers, heads, rows and columns of patches
    for layer, heads in enumerate(plain_weights(model)):
        for head, weights in enumerate(heads):
            torch.testing.assert_close(found[layer, head], weights[0, 1:].reshape(2, 3))


@torch.no_grad()
def test_rollout_follows_every_path_from_a_patch_to_the_class_token(model):
    mixed = [(sum(heads) / 2 + torch.eye(7)) / 2 for heads in plain_weights(model)]
    found = rollout_map(model, IMAGE)
    for patch in range(6):
        paths = sum(float(mixed[2][0, i] * mixed[1][i, j] * mixed[0][j, patch + 1]) for i in range(7) for j in range(7))
        assert float(found[patch // 3, patch % 3]) == pytest.approx(paths)


def test_a_label_that_depends_on_nothing_has_no_relevant_patch_and_others_have(model):
    blind = copy.deepcopy(model)
    with torch.no_grad():
        blind.output.weight[0] = 0.0
    assert not gradient_map(blind, IMAGE, 0).any()
    assert gradient_map(blind, IMAGE, 1).max() > 0
    torch.testing.assert_close(gradient_map(blind, IMAGE, 1), gradient_map(model, IMAGE, 1))


def test_each_label_has_its_own_gradients(model):
    first, second = (gradient_map(model, IMAGE, label) for label in (0, 1))
    assert (first >= 0).all()
    assert not torch.allclose(first, second)


def test_without_positions_moving_patches_moves_every_map(model):
    moved = copy.deepcopy(model)
    with torch.no_grad():
        moved.encoder.entrance.positions.table.zero_()
    mirrored = IMAGE.unflatten(3, (3, 3)).flip(3).flatten(3)  # columns of patches the other way round
    for made in (class_attention, rollout_map, lambda *given: gradient_map(*given, 1)):
        torch.testing.assert_close(made(moved, mirrored), made(moved, IMAGE).flip(-1))


def test_a_map_is_stretched_over_the_pixels_of_its_patches():
    weights = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    stretched = over_pixels(weights, (6, 9))
    assert stretched.shape == (6, 9)
    torch.testing.assert_close(stretched[1::3, 1::3], weights)  # the middles of patches
    assert torch.equal(over_pixels(weights, (2, 3)), weights)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_file_holds_the_pixels(channels):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(1).integers(256, size=(channels, 4, 7), dtype=np.uint8)
    read = np.atleast_3d(np.asarray(image.open(io.BytesIO(png(pixels))))).transpose(2, 0, 1)
    assert (read == pixels).all()


def test_the_picture_shows_the_image_and_every_map_and_stays_text():
    pixels = np.arange(6 * 9, dtype=np.uint8).reshape(1, 6, 9)
    maps = {
        "head <1>": torch.tensor([[0.5, 0.0], [0.0, 0.0]]),
        "rise": torch.tensor([[-0.2, 0.125], [0.125, 0.0]]),
        "against": torch.tensor([[-0.1, -0.2], [-0.3, 0.0]]),
    }
    drawn = map_svg(pixels, maps, "seen: <b>")
    root = ElementTree.fromstring(drawn)
    captions = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert captions == ["seen: <b>", "head <1>: 0 to 0.5", "rise: 0 to 0.12", "against: 0 to 0"]
    address = re.search(r'href="data:image/png;base64,([^"]+)"', drawn)[1]
    assert base64.b64decode(address) == png(pixels)
    cells = ["".join(path.get("d") for path in group.iter("{http://www.w3.org/2000/svg}path")) for group in root]
    assert cells == ["", "M0 0h1v1h-1z", "M1 0h1v1h-1zM0 1h1v1h-1z", ""]


def test_a_panel_is_covered_by_the_map_and_not_where_that_is_below_0():
    pixels = np.array([[[0, 200]], [[40, 200]], [[80, 200]]], dtype=np.uint8)
    half = covered(pixels, torch.tensor([[0.25, 0.5], [-1.0, 0.0]]))
    assert half.shape == (SIDE // 2, SIDE, 3)
    left, right = np.array([0, 40, 80]), np.array([200, 200, 200])
    expected = {
        (0, 0): 0.375 * np.array(COVER) + 0.625 * left,  # half of the largest value, at three quarters
        (0, -1): 0.75 * np.array(COVER) + 0.25 * right,
        (-1, 0): left,
        (-1, -1): right,
    }
    for place, colour in expected.items():
        assert np.abs(half[place] - colour).max() <= 0.5
    assert (covered(pixels)[:, : SIDE // 2] == left).all()


def test_the_png_file_has_the_image_and_a_panel_for_each_map():
    image = pytest.importorskip("PIL.Image")
    pixels = np.full((1, 4, 4), 90, dtype=np.uint8)
    maps = {"head 1": torch.eye(2), "head 2": torch.zeros(2, 2)}
    read = image.open(io.BytesIO(map_png(pixels, maps, "seen: 3")))
    assert read.height == LINE + SIDE
    drawn, step = np.asarray(read)[LINE:], (read.width - SIDE) // 2
    for place, one in enumerate((None, *maps.values())):
        assert (drawn[:, place * step : place * step + SIDE] == covered(pixels, one)).all()
        caption = np.asarray(read)[:LINE, place * step : place * step + SIDE]
        assert caption.min() < 128


def test_many_heads_stand_in_rows():
    """Twelve of them, as published models have, and the image: seven panels and six below."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.full((1, 4, 4), 90, dtype=np.uint8)
    maps = {f"head {head}": torch.eye(2) * head for head in range(12)}
    read = image.open(io.BytesIO(map_png(pixels, maps, "seen: 3")))
    assert read.height == 2 * (LINE + SIDE)
    step = (read.width - SIDE) // 6
    last = np.asarray(read)[2 * LINE + SIDE :, 5 * step : 5 * step + SIDE]
    assert (last == covered(pixels, maps["head 11"])).all()
    root = ElementTree.fromstring(map_svg(pixels, maps, "seen: 3"))
    places = [tuple(map(float, re.findall(r"[\d.]+", group.get("transform")))) for group in root]
    assert len(set(places)) == 13
    assert places[12] == (places[5][0], places[7][1])
    assert max(x for x, _ in places) < float(root.get("width"))
