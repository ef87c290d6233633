"""Line charts with two logarithmic axes, and dots against costs: one SVG file that needs no page around it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.explaining.chart import Scale, Series, number
from regard.explaining.markup import text

WIDTH, HEIGHT = 380, 270
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 44, 44
HEAD = 34  # of the sheet, where the legend is
MOST_TICKS = 7
NUMBER, DOT = (18.0, 13.0), (13.0, 10.0)  # how far a number must be from another, and from a dot: across, up
COLOURS, DASHES = ("#0072b2", "#d55e00", "#009e73"), ("none", "7 4", "2 3")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#5b6776}.title{font-weight:600;fill:#1b2430}.unit{font-size:11px}"
    ".x{text-anchor:middle}.y{text-anchor:end;dominant-baseline:central}"
    ".name{text-anchor:middle;dominant-baseline:central}"
    ".rule{stroke:#dbe1e8}.thread{stroke-width:1;opacity:.4}.line{fill:none;stroke-width:2}"
    ".edge{fill:none;stroke:#aab4c0;stroke-width:6;stroke-linejoin:round;stroke-linecap:round;opacity:.45}"
)


@dataclass(frozen=True)
class Panel:
    """One chart; every line has the same x values, which become the ticks below it."""

    title: str
    unit: str
    x_name: str
    series: tuple[Series, ...]


def sheet(title: str, panels: Sequence[Panel], columns: int) -> str:
    """The panels in rows of `columns`, under one legend: line i has the same name in all of them."""
    rows = -(-len(panels) // columns)
    width, height = columns * WIDTH, HEAD + rows * HEIGHT
    drawn = "".join(
        f'<g transform="translate({i % columns * WIDTH} {HEAD + i // columns * HEIGHT})">{draw(panel)}</g>'
        for i, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{text(title)}"><style>{STYLE}</style><rect width="{width}" height="{height}" '
        f'fill="#fff"/>{legend([line.name for line in panels[0].series])}{drawn}</svg>\n'
    )


def dots(
    title: str,
    y_name: str,
    panels: Mapping[str, Sequence[tuple[float, float]]],
    names: Sequence[str],
    marked: Sequence[bool],
    more: Sequence[str] = (),
) -> str:
    """For each x axis, by its name, the same things as numbered dots (x, y); the list below says who is who.

    A line joins those that nothing beats in both. On the axes named in `more`, more is better; on the others, less.
    """
    lines = -(-len(names) // len(panels))
    width, height = len(panels) * WIDTH, HEIGHT + 24 + 18 * lines
    drawn = ""
    for i, (name, places) in enumerate(panels.items()):
        chart = scatter(f"{y_name} by {name}", name, places, marked, 1 if name in more else -1)
        drawn += f'<g transform="translate({i * WIDTH} 10)">{chart}</g>'
    listed = "".join(
        f'<text x="{LEFT + i // lines * WIDTH}" y="{HEIGHT + 28 + 18 * (i % lines)}" fill="{colour(marked[i])}">'
        f'<tspan class="title">{i + 1}</tspan> {text(name)}</text>'
        for i, name in enumerate(names)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{text(title)}"><style>{STYLE}</style><rect width="{width}" height="{height}" '
        f'fill="#fff"/>{drawn}{listed}</svg>\n'
    )


def colour(marked: bool) -> str:
    return COLOURS[1] if marked else COLOURS[0]


def unbeaten(places: Sequence[tuple[float, float]], sign: int) -> list[tuple[float, float]]:
    """Those than which no other has as much y at as good an x; `sign` is 1 where more x is better, -1 where less is."""
    found: list[tuple[float, float]] = []
    for x, y in sorted(set(places), key=lambda place: (-sign * place[0], -place[1])):
        if not found or y > found[-1][1]:
            found.append((x, y))
    return found


def scatter(title: str, x_name: str, places: Sequence[tuple[float, float]], marked: Sequence[bool], sign: int) -> str:
    """x on a logarithmic axis; y on a straight one, whose ticks are whole numbers."""
    marks = ticks([x for x, _ in places])
    low, high = math.floor(min(y for _, y in places)), math.ceil(max(y for _, y in places) + 1e-9)
    x = Scale(math.log(marks[0]), math.log(marks[-1]), LEFT, WIDTH - RIGHT)
    y = Scale(float(low), float(max(high, low + 1)), HEIGHT - BOTTOM, TOP)
    parts = [f'<text class="title" x="{LEFT}" y="16">{text(title)}</text>']
    for mark in range(low, max(high, low + 1) + 1, max(1, (high - low) // MOST_TICKS)):
        height = y(float(mark))
        parts.append(f'<path class="rule" d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="y" x="{LEFT - 6}" y="{height:.1f}">{mark}</text>')
    for mark in marks:
        parts.append(f'<text class="x" x="{x(math.log(mark)):.1f}" y="{HEIGHT - BOTTOM + 16}">{number(mark)}</text>')
    parts.append(f'<text class="x" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 8}">{text(x_name)}</text>')
    edge = " ".join(f"{x(math.log(across)):.1f},{y(up):.1f}" for across, up in unbeaten(places, sign))
    parts.append(f'<polyline class="edge" points="{edge}"/>')
    found = [(x(math.log(across)), y(up)) for across, up in places]
    for i, ((at, height), (beside, above)) in enumerate(zip(found, free_places(found), strict=True)):
        fill = colour(marked[i])
        parts.append(f'<path class="thread" stroke="{fill}" d="M{at:.1f} {height:.1f}L{beside:.1f} {above:.1f}"/>')
        parts.append(f'<circle cx="{at:.1f}" cy="{height:.1f}" r="4" fill="{fill}"/>')
        parts.append(f'<text class="name" x="{beside:.1f}" y="{above:.1f}">{i + 1}</text>')
    return "".join(parts)


def free_places(dots: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """For each dot the middle of a number near it that meets neither another number nor a dot, if there is one.

    Nearest first, on rings around the dot; to the right before the left.
    """
    found: list[tuple[float, float]] = []
    rings = [
        (radius * math.cos(turn * math.pi / 8), -radius * math.sin(turn * math.pi / 8))
        for radius in range(14, 100, 8)
        for turn in (1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7)
    ]
    for at, height in dots:
        near = [(at + right, height + down) for right, down in rings]
        inside = [(a, b) for a, b in near if LEFT < a < WIDTH - 8 and TOP - 12 < b < HEIGHT - BOTTOM - 6]
        free = (one for one in inside if not any(meets(one, other, *NUMBER) for other in found))
        found.append(next((one for one in free if not any(meets(one, dot, *DOT) for dot in dots)), near[0]))
    return found


def meets(one: tuple[float, float], other: tuple[float, float], width: float, height: float) -> bool:
    return abs(one[0] - other[0]) < width and abs(one[1] - other[1]) < height


def legend(names: Sequence[str]) -> str:
    return "".join(
        f'<path class="line" stroke="{COLOURS[i]}" stroke-dasharray="{DASHES[i]}" d="M{LEFT + 160 * i} 20h28"/>'
        f'<text x="{LEFT + 160 * i + 34}" y="24">{text(name)}</text>'
        for i, name in enumerate(names)
    )


def draw(panel: Panel) -> str:
    places = sorted({point.x for line in panel.series for point in line.points})
    marks = ticks([point.y for line in panel.series for point in line.points])
    x = Scale(math.log(places[0]), math.log(places[-1]), LEFT, WIDTH - RIGHT)
    y = Scale(math.log(marks[0]), math.log(marks[-1]), HEIGHT - BOTTOM, TOP)
    parts = [f'<text class="title" x="{LEFT}" y="16">{text(panel.title)}</text>']
    parts.append(f'<text class="unit" x="{LEFT}" y="32">{text(panel.unit)}</text>')
    for mark in marks:
        height = y(math.log(mark))
        parts.append(f'<path class="rule" d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="y" x="{LEFT - 6}" y="{height:.1f}">{number(mark)}</text>')
    for place in places:
        parts.append(f'<text class="x" x="{x(math.log(place)):.1f}" y="{HEIGHT - BOTTOM + 16}">{number(place)}</text>')
    parts.append(f'<text class="x" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 8}">{text(panel.x_name)}</text>')
    for i, line in enumerate(panel.series):
        path = " ".join(f"{x(math.log(p.x)):.1f},{y(math.log(p.y)):.1f}" for p in line.points)
        parts.append(f'<polyline class="line" stroke="{COLOURS[i]}" stroke-dasharray="{DASHES[i]}" points="{path}"/>')
    return "".join(parts)


def ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten that enclose the values, with 2 and 5 times each of them where few are enough.

    They span ten times or more, so that noise does not look like growth.
    """
    low, high = min(values), max(values)
    if high < 10 * low:
        middle = math.sqrt(low * high)
        low, high = min(low, middle / math.sqrt(10)), max(high, middle * math.sqrt(10))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    fine = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    below = max(i for i, mark in enumerate(fine) if mark <= low * (1 + 1e-9))
    above = next(i for i, mark in enumerate(fine) if mark >= high * (1 - 1e-9))
    if above - below < MOST_TICKS:
        return fine[below : above + 1]
    return [10.0**power for power in range(first, last + 1)]
