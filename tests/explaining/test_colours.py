"""The colours of the explanation page can be told apart by those who do not see red or green as others do."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import regard.explaining

CSS = (Path(regard.explaining.__file__).parent / "explain_page.css").read_text(encoding="utf-8")
SCHEMES = ("light", "dark")
# Viénot, Brettel & Mollon 1999 (Color Research and Application 24:243–252): cones from linear RGB, what stands for the
# one that is missing, and the scale and offset that keep the result displayable.
CONES = torch.tensor(
    [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]], dtype=torch.float64
)
SIGHTS = {
    "usual": (torch.eye(3), 1.0, 0.0),
    "protanopia": (torch.tensor([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]]), 0.992052, 0.003974),
    "deuteranopia": (torch.tensor([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]]), 0.957237, 0.0213814),
}
XYZ = torch.tensor(  # of linear sRGB, IEC 61966-2-1
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], dtype=torch.float64
)
GLANCE = 20.0  # ΔE of what differs at a glance; `JUST` is noticeable (Mahy et al. 1994)
JUST = 2.3
STEPS = 5  # shades of a ramp, the paper among them


def colour(name, scheme):
    """sRGB in 0..1 of a colour of the page."""
    found = re.search(rf"--{name}: light-dark\(#(\w+), #(\w+)\)", CSS)[1 + SCHEMES.index(scheme)]
    return rgb(found if len(found) == 6 else "".join(2 * digit for digit in found))


def rgb(digits):
    return torch.tensor([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)], dtype=torch.float64)


def lab(srgb, sight):
    """CIE L*a*b* of a colour as it is seen: linear, without the cone that is missing, and by the cube roots of XYZ."""
    missing, scale, offset = SIGHTS[sight]
    linear = torch.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = torch.linalg.solve(CONES, missing.double() @ CONES @ (scale * linear + offset)).clamp(0, 1)
    t = XYZ @ seen / XYZ.sum(1)
    x, y, z = torch.where(t > (6 / 29) ** 3, t ** (1 / 3), t / (3 * (6 / 29) ** 2) + 4 / 29).tolist()
    return torch.tensor([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one, other, sight):
    """ΔE = ‖Lab − Lab′‖ (CIE 1976)."""
    return float((lab(one, sight) - lab(other, sight)).norm())


def ramp(name, scheme):
    """The hue over the paper, ever more opaque: the page paints a value over the peak so."""
    paper, hue = colour("paper", scheme), colour(name, scheme)
    return [paper + (hue - paper) * i / (STEPS - 1) for i in range(STEPS)]


def test_the_formula_gives_what_can_be_worked_out():
    white, black = rgb("ffffff"), rgb("000000")
    assert difference(white, black, "usual") == pytest.approx(100, abs=0.01)
    # Grey (0x77 / 255 → 0.1845 linear): L* = 116 · 0.1845^⅓ − 16 = 50.03.
    assert lab(rgb("777777"), "usual").tolist() == pytest.approx([50.03, 0, 0], abs=0.05)


@pytest.mark.parametrize("sight", ["protanopia", "deuteranopia"])
def test_grey_stays_grey_without_a_cone(sight):
    assert lab(rgb("777777"), sight)[1:].abs().max() < 1


def test_red_and_green_of_one_lightness_merge_without_a_cone():
    red, green = rgb("c04040"), rgb("5f7a35")
    assert difference(red, green, "usual") > 3 * GLANCE
    assert difference(red, green, "deuteranopia") < GLANCE


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_the_two_hues_stay_apart_at_every_shade(sight, scheme):
    pairs = list(zip(ramp("heat", scheme), ramp("against", scheme), strict=True))
    assert min(difference(one, other, sight) for one, other in pairs[1:]) > GLANCE


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["heat", "against"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_a_ramp_goes_one_way_in_lightness(sight, name, scheme):
    lightness = [float(lab(one, sight)[0]) for one in ramp(name, scheme)]
    sign = -1 if scheme == "light" else 1
    assert all(sign * (after - before) > JUST for before, after in pairwise(lightness))
