"""A chart puts every value where its axes say it is."""

import html
import json
import math
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.explaining.chart import MOST_POINTS, Point, Series, chart, number, thin, ticks

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(VALUES, st.integers(3, 9))
def test_ticks_enclose_the_values_at_equal_round_steps(values, most):
    marks = ticks(values, most)
    step = marks[1] - marks[0]
    slack = 1e-6 * max(step, abs(marks[0]), abs(marks[-1]))
    assert 2 <= len(marks) <= most + 1
    assert marks[0] - slack <= min(values) <= max(values) <= marks[-1] + slack
    assert all(math.isclose(b - a, step, rel_tol=1e-5) for a, b in pairwise(marks))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.0, 3.0), [0, 1, 2, 3]),
        ((1.0, 600.0), [0, 200, 400, 600]),
        ((5.0,), [2, 4, 6, 8]),
        ((0.0,), [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_worked_by_hand(values, expected):
    assert ticks(values, 5) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1 + 0.2, "0.3"), (1500.0, "1500"), (20_000.0, "20k"), (2_500_000.0, "2.5M"), (-1e-17, "0"), (100.0, "100")],
)
def test_numbers_are_short(value, shown):
    assert number(value) == shown


def places(drawn):
    return [json.loads(html.unescape(data)) for data in re.findall(r'data-points="([^"]*)"', drawn)]


def tick_places(drawn, axis, coordinate):
    found = re.findall(rf'<text class="tick-{axis}" x="([\d.]+)" y="([\d.]+)">([^<]+)</text>', drawn)
    return {float(shown): float((x, y)[coordinate]) for x, y, shown in found}


def test_a_point_on_a_tick_is_drawn_at_the_tick():
    drawn = chart(
        "loss", [Series("train", (Point(0.0, 3.0, "a"), Point(200.0, 1.0, "b"), Point(600.0, 0.0, "c")))], "step"
    )
    across, up = tick_places(drawn, "x", 0), tick_places(drawn, "y", 1)
    assert places(drawn) == [[[across[0], up[3], "a"], [across[200], up[1], "b"], [across[600], up[0], "c"]]]
    assert across[0] < across[600]
    assert up[3] < up[0]  # pixels count downwards


def test_values_that_are_not_finite_leave_no_point():
    points = (Point(0.0, math.nan, "a"), Point(1.0, 2.0, "b"), Point(2.0, math.inf, "c"))
    assert [note for _, _, note in places(chart("t", [Series("s", points)], "step"))[0]] == ["b"]


def test_dots_have_their_names_beside_them_and_no_name_lies_on_another():
    dots = [("first", 0.0, 1.0), ("second", 1.0, 1.0), ("third", 1.0, 1.01), ("last of all", 10.0, 3.0)]
    drawn = chart("t", [Series(name, (Point(x, y, name),)) for name, x, y in dots], "step")
    assert "key" not in drawn  # no legend
    found = re.findall(r'<text class="dot-name s\d" x="([\d.]+)" y="([\d.]+)">([^<]+)</text>', drawn)
    assert [name for _, _, name in found] == [name for name, _, _ in dots]
    boxes = [(float(x), float(y) - 6, float(x) + 6 * len(name), float(y) + 6) for x, y, name in found]
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert 0 < left < right < 480
        for other in boxes[:i]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    lines = [Series(name, (Point(x, y, name), Point(x + 1, y, name))) for name, x, y in dots]
    assert 'class="dot-name' not in chart("t", lines, "step")


def test_without_values_the_figure_says_so():
    assert "no values yet" in chart("t", [Series("s", (Point(0.0, math.nan, "a"),))], "step")


@pytest.mark.parametrize("count", [1, MOST_POINTS - 1, MOST_POINTS, MOST_POINTS + 1, 7 * MOST_POINTS + 3])
def test_thinning_keeps_the_last_point_the_order_and_the_limit(count):
    points = [Point(float(i), float(i), "") for i in range(count)]
    kept = thin(points)
    assert len(kept) <= MOST_POINTS
    assert kept[-1] == points[-1]
    assert list(kept) == sorted(kept, key=lambda p: p.x)
    assert len(kept) == count or len(kept) > MOST_POINTS // 2


def test_several_lines_have_a_key_and_one_line_has_none():
    one, two = (Series(name, (Point(0.0, 1.0, ""), Point(1.0, 2.0, ""))) for name in ("train", "valid"))
    assert re.findall(r'class="key s(\d)">(\w+)<', chart("t", [one, two], "step")) == [("0", "train"), ("1", "valid")]
    assert "key" not in chart("t", [one], "step")
