"""A chart on logarithmic axes puts every value where its ticks say it is."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.plot import DOT, MOST_TICKS, NUMBER, Panel, free_places, meets, sheet, ticks, unbeaten
from regard.explaining.chart import Point, Series

XML = "{http://www.w3.org/2000/svg}"


def panel(*lines):
    names = ("one", "two", "three")
    series = (
        Series(name, tuple(Point(float(x), y, "") for x, y in line)) for name, line in zip(names, lines, strict=False)
    )
    return Panel("a < b", "µs", "length", tuple(series))


def drawn(*panels, columns=2):
    return ElementTree.fromstring(sheet("t", panels, columns))  # raises where it is no whole document


def labels(tree, kind, coordinate):
    found = tree.iter(f"{XML}text")
    return {node.text: float(node.get(coordinate)) for node in found if node.get("class") == kind}


def paths(tree):
    return [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in tree.iter(f"{XML}polyline")
    ]


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=12))
def test_ticks_rise_enclose_the_values_and_span_ten_times_or_more(values):
    marks = ticks(values)
    assert all(a < b for a, b in pairwise(marks))
    assert marks[0] <= min(values) * (1 + 1e-6)
    assert marks[-1] >= max(values) * (1 - 1e-6)
    assert marks[-1] >= 9.99 * marks[0]
    assert len(marks) <= MOST_TICKS or all(math.isclose(b, 10 * a) for a, b in pairwise(marks))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1.0, 10.0), [1, 2, 5, 10]),
        ((3.0, 90.0), [2, 5, 10, 20, 50, 100]),
        ((2.0, 3000.0), [1, 10, 100, 1000, 10_000]),
        ((4.0, 5.0), [1, 2, 5, 10, 20]),  # the middle is √20 ≈ 4.5: from 1.4 to 14
    ],
)
def test_ticks_worked_by_hand(values, expected):
    assert ticks(values) == pytest.approx(expected)


def test_a_point_on_two_ticks_is_drawn_where_they_meet():
    tree = drawn(panel([(128, 1.0), (256, 5.0), (512, 10.0)]))
    across, up = labels(tree, "x", "x"), labels(tree, "y", "y")
    assert paths(tree) == [[(across["128"], up["1"]), (across["256"], up["5"]), (across["512"], up["10"])]]
    assert up["10"] < up["1"]  # pixels count downwards


def test_equal_factors_are_equal_distances():
    ((one, two, three),) = paths(drawn(panel([(10, 1.0), (100, 10.0), (1000, 100.0)])))
    assert two[0] - one[0] == pytest.approx(three[0] - two[0], abs=0.11)
    assert two[1] - one[1] == pytest.approx(three[1] - two[1], abs=0.11)


def test_every_panel_has_a_place_of_its_own_inside_the_sheet():
    line = [(1, 1.0), (2, 2.0)]
    tree = drawn(panel(line), panel(line), panel(line))
    places = [tuple(map(int, re.findall(r"\d+", group.get("transform")))) for group in tree.iter(f"{XML}g")]
    assert len(set(places)) == 3
    assert all(x < int(tree.get("width")) and y < int(tree.get("height")) for x, y in places)


def test_the_legend_names_each_line_once():
    tree = drawn(panel([(1, 1.0), (2, 2.0)], [(1, 3.0), (2, 4.0)]), panel([(1, 1.0), (2, 2.0)], [(1, 3.0), (2, 4.0)]))
    assert [node.text for node in tree.iter(f"{XML}text")].count("two") == 1


def test_the_edge_joins_what_nothing_beats():
    places = [(10, 30.0), (20, 29.0), (15, 31.0), (20, 28.0), (5, 31.0), (40, 20.0)]
    assert unbeaten(places, 1) == [(40, 20.0), (20, 29.0), (15, 31.0)]  # more x is better
    assert unbeaten(places, -1) == [(5, 31.0)]  # less is: it has the most of y too


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(90, 300), st.floats(80, 190)), min_size=1, max_size=16))
def test_numbers_of_dots_meet_no_other_number_and_no_dot(dots):
    numbers = free_places(dots)
    for i, number in enumerate(numbers):
        assert not any(meets(number, other, *NUMBER) for other in numbers[:i])
        assert not any(meets(number, dot, *DOT) for dot in dots)
