"""A line chart as inline SVG: axes, a grid, a legend, and the values that the page shows under the pointer.

Lines of one point each are dots, with their names beside them.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from regard.explaining.markup import text

WIDTH, HEIGHT = 480, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 20, 12, 40
STYLES = 18  # of lines: six colours, whole, dashed and dotted; then they repeat
LETTER, LINE = 6.6, 12.0  # of a name beside a dot: how wide and how high, a little generous
MOST_POINTS = 300  # a line has no more pixels to show than this


Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Point:
    """`note` is what the page shows under the pointer."""

    x: float
    y: float
    note: str


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Scale:
    """A straight line from data to pixels: low → start, high → end."""

    low: float
    high: float
    start: int
    end: int

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def chart(title: str, series: Sequence[Series], x_name: str) -> str:
    """One figure; values that are not finite are left out."""
    drawn = [Series(line.name, thin([p for p in line.points if math.isfinite(p.y)])) for line in series]
    lines = [line for line in drawn if line.points]
    points = [point for line in lines for point in line.points]
    if not points:
        return f'<figure class="chart"><figcaption>{text(title)}</figcaption><p>no values yet</p></figure>'
    x_ticks, y_ticks = ticks([p.x for p in points], 6), ticks([p.y for p in points], 5)
    x = Scale(x_ticks[0], x_ticks[-1], LEFT, WIDTH - RIGHT)
    y = Scale(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    dots = len(lines) > 1 and len(points) == len(lines)
    return (
        f'<figure class="chart"><figcaption>{text(title)}{"" if dots else legend(lines)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)} by {text(x_name)}">'
        f"{axes(x, y, x_ticks, y_ticks)}"
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 4}">{text(x_name)}</text>'
        f"{''.join(draw(line, i, x, y) for i, line in enumerate(lines))}"
        f"{names(lines, x, y) if dots else ''}"
        f'<circle class="mark" r="4"/></svg><output class="value">{text(lines[0].points[-1].note)}</output></figure>'
    )


def thin(points: Sequence[Point]) -> tuple[Point, ...]:
    """At most MOST_POINTS of them, evenly spread, the last always among them."""
    stride = -(-len(points) // MOST_POINTS) or 1
    return tuple(points[::-1][::stride][::-1])


def ticks(values: Sequence[float], most: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) at equal steps that enclose the values: between 2 and most + 1."""
    low, high = min(values), max(values)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # nothing to tell apart: make room around it
        room = abs(high) / 2 or 1.0
        low, high = low - room, high + room
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def legend(lines: Sequence[Series]) -> str:
    if len(lines) < 2:
        return ""
    return "".join(f'<span class="key s{i % STYLES}">{text(line.name)}</span>' for i, line in enumerate(lines))


def axes(x: Scale, y: Scale, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> str:
    parts = []
    for tick in y_ticks:
        parts.append(f'<path class="rule" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick-y" x="{LEFT - 6}" y="{y(tick):.1f}">{number(tick)}</text>')
    for tick in x_ticks:
        parts.append(f'<text class="tick-x" x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 16}">{number(tick)}</text>')
    return "".join(parts)


def draw(line: Series, i: int, x: Scale, y: Scale) -> str:
    """The line, its points when they are few enough to tell apart, and the notes for the pointer."""
    places = [(round(x(p.x), 1), round(y(p.y), 1), p.note) for p in line.points]
    path = " ".join(f"{px:g},{py:g}" for px, py, _ in places)
    dots = "".join(f'<circle cx="{px:g}" cy="{py:g}" r="2.5"/>' for px, py, _ in places) if len(places) <= 40 else ""
    data = text(json.dumps(places, separators=(",", ":")))
    return f'<g class="line s{i % STYLES}" data-points="{data}"><polyline points="{path}"/>{dots}</g>'


def names(lines: Sequence[Series], x: Scale, y: Scale) -> str:
    """Each name beside its dot, where it covers no other dot and no other name, if there is such a place."""
    dots = [(x(line.points[0].x), y(line.points[0].y)) for line in lines]
    taken: list[Box] = [(across - 4, up - 4, across + 4, up + 4) for across, up in dots]
    parts = []
    for i, (line, (across, up)) in enumerate(zip(lines, dots, strict=True)):
        width = LETTER * len(line.name)
        right, left = across + 6, across - 6 - width
        near = [
            (start, middle - LINE / 2, start + width, middle + LINE / 2)
            for middle in (up, up - LINE, up + LINE)
            for start in (right, left, across - width / 2)
            if start > LEFT and start + width < WIDTH
        ]
        free = (box for box in near if not any(meet(box, other) for other in taken))
        box = next(free, (right, up - LINE / 2, right + width, up + LINE / 2))
        taken.append(box)
        place = f'x="{box[0]:.1f}" y="{box[1] + LINE / 2:.1f}"'
        parts.append(f'<text class="dot-name s{i % STYLES}" {place}>{text(line.name)}</text>')
    return "".join(parts)


def meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def number(value: float) -> str:
    """1234567 → 1.2M, 20000 → 20k, 0.30000000000000004 → 0.3."""
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{0.0 if abs(value) < 1e-12 else value:.4g}"
