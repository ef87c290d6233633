"""Pixels: brought to other colours, normalised and moved as a plain loop, numpy and Pillow do it."""

import numpy as np
import pytest
from pydantic import ValidationError

from regard.data.pixels import Normalisation, flip, measure, normalise, recolour, shift
from regard.errors import DataError


def drawn(n: int = 5, c: int = 3, y: int = 4, x: int = 7, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 256, (n, c, y, x), dtype=np.uint8)


@pytest.mark.parametrize("n", [1, 5, 2_100])
def test_mean_and_deviation_are_those_of_all_pixels(n):
    images = drawn(n)
    found = measure(images)
    np.testing.assert_allclose(found.mean, (images / 255).mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(found.std, (images / 255).std((0, 2, 3)), rtol=1e-12)


def test_normalised_training_pixels_have_mean_0_and_deviation_1():
    images = drawn(50)
    found = normalise(images, measure(images)).astype(np.float64)
    np.testing.assert_allclose(found.mean((0, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(found.std((0, 2, 3)), 1, atol=1e-6)


def test_a_channel_that_never_changes_becomes_0():
    images = drawn(3)
    images[:, 1] = 77
    found = measure(images)
    assert found.std[1] == 1.0
    np.testing.assert_allclose(normalise(images, found)[:, 1], 0, atol=1e-6)


def test_a_stored_normalisation_reads_back_equal():
    found = measure(drawn(4))
    assert Normalisation.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    "given",
    [{"mean": (0.5,), "std": (0.5, 0.5)}, {"mean": (0.5,), "std": (0.0,)}, {"mean": (float("nan"),), "std": (1.0,)}],
)
def test_a_normalisation_that_cannot_be_applied_is_refused(given):
    with pytest.raises(ValidationError):
        Normalisation(**given)


def test_images_with_other_channels_than_the_model_are_refused():
    with pytest.raises(DataError, match="found 3 channels, the model was trained on 1"):
        normalise(drawn(2), measure(drawn(2, c=1)))


def test_colour_becomes_grey_as_in_pillow():
    image = pytest.importorskip("PIL.Image")
    images = drawn(6)
    theirs = [np.asarray(image.fromarray(one.transpose(1, 2, 0)).convert("L")) for one in images]
    assert (recolour(images, 1)[:, 0] == np.stack(theirs)).all()


def test_grey_becomes_colour_and_back_unchanged():
    images = drawn(3, c=1)
    colour = recolour(images, 3)
    assert colour.shape == (3, 3, 4, 7)
    assert (recolour(colour, 1) == images).all()
    assert recolour(images, 1) is images


def moved(image: np.ndarray, down: int, right: int) -> np.ndarray:
    """One image moved, pixel by pixel."""
    found = np.zeros_like(image)
    _, height, width = image.shape
    for y in range(height):
        for x in range(width):
            if 0 <= y - down < height and 0 <= x - right < width:
                found[:, y, x] = image[:, y - down, x - right]
    return found


def test_each_image_is_moved_by_its_own_numbers():
    moves = [(down, right) for down in range(-2, 3) for right in range(-2, 3)]
    images = drawn(len(moves), c=2)
    before = images.copy()
    found = shift(images, *np.array(moves).T)
    for image, after, move in zip(images, found, moves, strict=True):
        assert (after == moved(image, *move)).all()
    assert (images == before).all()


def test_a_shift_by_nothing_changes_nothing():
    images = drawn()
    nothing = np.zeros(len(images), dtype=np.int64)
    assert (shift(images, nothing, nothing) == images).all()


def test_the_chosen_images_are_mirrored_and_the_others_are_not():
    images = drawn(4)
    chosen = np.array([True, False, False, True])
    found = flip(images, chosen)
    assert (found[chosen] == images[chosen][..., ::-1]).all()
    assert (found[~chosen] == images[~chosen]).all()
