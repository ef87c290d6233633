"""Bars begin at zero, are as long as their values, and say them."""

import re

import pytest

from regard.explaining.bars import Bar, bars

ROWS = (Bar("a <b>", 2.0), Bar("c", -6.0), Bar("d", 0.0), Bar("e", 1.0))


def drawn(rows):
    found = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', bars("gains", rows))
    return [(kind, float(x), float(width)) for kind, x, width in found]


def test_lengths_are_in_the_ratio_of_the_values_and_all_begin_at_zero():
    a, c, d, e = drawn(ROWS)
    assert [kind for kind, _, _ in (a, c, d, e)] == ["gain", "cost", "gain", "gain"]
    assert a[2] == pytest.approx(2 * e[2], abs=0.11)
    assert c[2] == pytest.approx(6 * e[2], abs=0.4)
    assert d[2] == 0
    assert a[1] == e[1] == d[1] == pytest.approx(c[1] + c[2], abs=0.11)


def test_every_name_and_value_is_there_as_text_within_the_picture():
    page = bars("what <i>", ROWS)
    assert re.findall(r"[+−]\d\.\d", page) == ["+2.0", "−6.0", "+0.0", "+1.0"]
    assert "a &lt;b&gt;" in page
    assert "<i>" not in page
    width = float(re.search(r'viewBox="0 0 (\d+)', page)[1])
    assert all(0 <= float(x) <= width for x in re.findall(r' x="([\d.]+)"', page))
