"""The picture of a map has a square for each weight, in a shade of its own."""

import importlib.util
import io

import pytest
import torch

from regard.errors import RegardError
from regard.explaining.heatmap_png import AGAINST, CELL, HEAT, png, shades

Image = pytest.importorskip("PIL.Image")
WEIGHTS = torch.tensor([[0.8, 0.4, 0.0], [0.2, -0.8, 0.6]])


def test_shades_run_from_white_to_the_hue_of_their_sign():
    halfway = tuple(round(255 + 0.5 * (channel - 255)) for channel in HEAT)
    found = [[tuple(cell) for cell in row] for row in shades(WEIGHTS).tolist()]
    assert (found[0][0], found[0][2], found[1][1]) == (HEAT, (255, 255, 255), AGAINST)
    assert all(abs(a - b) <= 1 for a, b in zip(found[0][1], halfway, strict=True))
    assert shades(torch.zeros(2, 3)).min() == 255


def test_every_weight_has_a_square_of_its_shade():
    picture = Image.open(io.BytesIO(png(WEIGHTS, ["alpha", "b", "漢字"], ["eins", "zwei und drei"])))
    cells = shades(WEIGHTS)
    # The cells are found by the full hue of the largest weight, at the upper left of the map.
    pixels = picture.convert("RGB")
    left, top = next(
        (x, y) for y in range(picture.height) for x in range(picture.width) if pixels.getpixel((x, y)) == HEAT
    )
    for q in range(2):
        for k in range(3):
            for edge in (1, CELL - 2):
                assert pixels.getpixel((left + CELL * k + edge, top + CELL * q + edge)) == tuple(cells[q, k].tolist())


def test_without_pillow_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RegardError, match=r"regard\[images\]"):
        png(WEIGHTS, ["a", "b", "c"], ["x", "y"])
