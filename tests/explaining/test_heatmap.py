"""A heat map loses no weight that its shades can tell, keeps labels above their columns, and lets nothing through."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.explaining.heatmap import BLOCKS, INDEXED, SHADES, TRUE, display_width, printable, svg, terminal

WEIGHTS = torch.tensor([[0.8, 0.2, 0.0], [0.15, 0.25, 0.6]])
SVG = "{http://www.w3.org/2000/svg}"


def random_weights(q, k):
    return torch.rand(q, k, generator=torch.Generator().manual_seed(q * 100 + k), dtype=torch.float64).softmax(-1)


def read_back(picture):
    """Weights over their maximum, read from the paths of an SVG."""
    read = {}
    for path in ET.fromstring(picture).iter(f"{SVG}path"):
        for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path.get("d")):
            read |= {(int(y), int(x) + i): float(path.get("fill-opacity")) for i in range(int(length))}
    return read


def body(drawn, rows):
    return drawn.split("\n")[-1 - rows : -1]


def test_svg_cells_give_the_weights_back_to_half_a_shade():
    weights = random_weights(4, 7)
    read = read_back(svg(weights, ["word"] * 7, ["wort"] * 4))
    ours = torch.tensor([[read.get((q, k), 0.0) for k in range(7)] for q in range(4)], dtype=torch.float64)
    assert (ours - weights / weights.max()).abs().max() <= 0.5 / SHADES + 1e-9


def test_terminal_blocks_give_the_weights_back_to_half_a_block():
    weights = random_weights(3, 5)
    lines = body(terminal(weights, list("abcde"), list("xyz")), 3)
    ours = torch.tensor([[BLOCKS.index(line.ljust(12)[2 + 2 * k]) / 4 for k in range(5)] for line in lines])
    assert (ours - weights / weights.max()).abs().max() <= 0.5 / 4 + 1e-6


def test_a_small_map_drawn_by_hand():
    assert terminal(WEIGHTS, ["A", "man", " "], ["Ein", "b"]).split("\n") == [
        "      ╭ man",
        "    A │ ␣",
        "Ein ██░░",
        "  b ░░░░▓▓",
        "      ░▒▒▒▓██ 0 to 0.80",
    ]


def test_what_is_below_nothing_is_drawn_as_nothing():
    weights = torch.tensor([[0.04, -0.5], [-0.01, 0.02]])
    assert terminal(weights, ["a", "b"], ["x", "y"]) == terminal(weights.clamp(min=0), ["a", "b"], ["x", "y"])
    assert terminal(weights, ["a", "b"], ["x", "y"]).endswith("0 to 0.04")
    assert svg(weights, ["a", "b"], ["x", "y"]) == svg(weights.clamp(min=0), ["a", "b"], ["x", "y"])
    assert terminal(-weights.abs(), ["a", "b"], ["x", "y"]).split("\n")[1:3] == ["x", "y"]


def test_words_hang_on_leaders_that_end_above_their_columns():
    lines = terminal(WEIGHTS, ["A", "man", "rides"], ["x", "y"]).split("\n")
    assert lines[:3] == ["  ╭ A", "  │ ╭ man", "  │ │ ╭ rides"]


@pytest.mark.parametrize("tokens", ["abcde", "日本語です", "a本b语c"])
def test_characters_stand_above_their_columns(tokens):
    top = terminal(random_weights(2, 5), list(tokens), ["x", "y"]).split("\n")[0]
    for i, token in enumerate(tokens):
        assert display_width(top[: top.index(token)]) == 2 + 2 * i


def test_long_lines_of_characters_take_one_column_each():
    drawn = terminal(random_weights(1, 50), list("ab" * 25), ["x"])
    assert drawn.split("\n")[0] == "  " + "ab" * 25


@pytest.mark.parametrize("colour", ["256", "true"])
def test_without_its_escape_sequences_a_coloured_map_has_the_labels_of_the_plain_one(colour):
    plain, coloured = (terminal(WEIGHTS, list("abc"), list("xy"), kind) for kind in ("none", colour))
    bare = re.sub(r"\033\[[\d;]*m", "", coloured)
    assert re.sub(f"[{BLOCKS}]+", " ", plain).split() == bare.split()
    assert coloured.count("\033[0m") == 3  # each row and the scale end with the colours they found


def test_the_largest_weight_has_the_last_colour_and_zero_the_first():
    line = body(terminal(torch.tensor([[0.0, 0.5]]), list("ab"), ["x"], "true"), 1)[0]
    assert line == "x \033[48;2;68;1;84m  \033[48;2;253;231;37m  \033[0m"


def luminance(rgb):
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def of_index(index):
    """The colour cube of terminals with 256 colours: 16 + 36 r + 6 g + b."""
    levels = (0, 95, 135, 175, 215, 255)
    return tuple(levels[(index - 16) // size % 6] for size in (36, 6, 1))


@pytest.mark.parametrize("ramp", [TRUE, [of_index(i) for i in INDEXED]], ids=["true", "256"])
def test_more_weight_is_always_lighter(ramp):
    light = [luminance(rgb) for rgb in ramp]
    assert light == sorted(set(light))


def test_a_map_of_zeros_is_blank():
    drawn = terminal(torch.zeros(2, 3), list("abc"), list("xy"))
    assert body(drawn, 2) == ["x", "y"]
    assert read_back(svg(torch.zeros(2, 3), list("abc"), list("xy"))) == {}


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.text(max_size=12))
def test_labels_never_control_the_terminal(token):
    shown = printable(token)
    assert shown
    assert shown.isprintable()
    assert " " not in shown


@pytest.mark.parametrize(
    ("token", "shown"),
    [(" ", "␣"), ("\u00a0", "␣"), ("\033[2J", "␛[2J"), ("", "∅"), ("\u200f", "·"), ("\u0301", "◌\u0301")],
)
def test_invisible_characters_are_drawn(token, shown):
    assert printable(token) == shown


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.text(max_size=30), min_size=3, max_size=3))
def test_any_token_leaves_the_svg_well_formed_and_readable(tokens):
    texts = [node.text for node in ET.fromstring(svg(WEIGHTS, tokens, ["<a>", "&"])).iter(f"{SVG}text")]
    assert texts[3:] == ["<a>", "&"]
    assert [len(text) <= 18 for text in texts] == [True] * 5


def test_permuting_the_columns_permutes_the_cells():
    order = [3, 0, 2, 1]
    weights = random_weights(2, 4)
    before, after = (read_back(svg(w, list("abcd"), list("xy"))) for w in (weights, weights[:, order]))
    assert after == {(q, order.index(k)): shade for (q, k), shade in before.items()}


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("क\u093f", 2), ("", 0)])
def test_columns_of_a_terminal(text, columns):
    assert display_width(text) == columns
