"""Horizontal bars to both sides of zero as inline SVG: what each of many things adds, or costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.explaining.chart import Scale, number, ticks
from regard.explaining.markup import text

WIDTH, NAMES, RIGHT = 560, 150, 56  # room for names on the left, and for a number beyond the longest bar
ROW, BAR, TOP, BOTTOM = 20, 12, 6, 24


@dataclass(frozen=True)
class Bar:
    name: str
    value: float


def bars(title: str, rows: Sequence[Bar]) -> str:
    """One figure, a line for each row in the order given; its number stands at the end of its bar."""
    marks = ticks([0.0, *(row.value for row in rows)], 6)
    x = Scale(marks[0], marks[-1], NAMES + RIGHT, WIDTH - RIGHT)
    foot = TOP + ROW * len(rows)
    rules = "".join(
        f'<path class="rule" d="M{x(mark):.1f} {TOP}V{foot}"/>'
        f'<text class="tick-x" x="{x(mark):.1f}" y="{foot + 16}">{number(mark)}</text>'
        for mark in marks
    )
    drawn = "".join(bar(row, TOP + ROW * i + ROW / 2, x) for i, row in enumerate(rows))
    return (
        f'<figure class="chart"><figcaption>{text(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {foot + BOTTOM}" role="img" aria-label="{text(title)}">{rules}{drawn}</svg>'
        "</figure>"
    )


def bar(row: Bar, middle: float, x: Scale) -> str:
    start, end = sorted((x(0.0), x(row.value)))
    more = row.value >= 0
    said = f"{row.value:+.1f}".replace("-", "−")
    beside = f'x="{end + 5:.1f}"' if more else f'x="{start - 5:.1f}" text-anchor="end"'
    return (
        f'<text x="{NAMES}" y="{middle:g}" text-anchor="end" dominant-baseline="central">{text(row.name)}</text>'
        f'<rect class="{"gain" if more else "cost"}" x="{start:.1f}" y="{middle - BAR / 2:g}" '
        f'width="{end - start:.1f}" height="{BAR}"/>'
        f'<text {beside} y="{middle:g}" dominant-baseline="central">{said}</text>'
    )
