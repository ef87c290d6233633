"""A map of attention as text for a terminal and as SVG for a page: keys along the top, queries down the side.

Shades are relative to the largest weight of the map, which is written beside it: long inputs spread their attention
thin, and a fixed scale would show nothing.
"""

import unicodedata
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from regard.evaluation.alignment import Links
from regard.explaining.markup import text

Colour = Literal["none", "256", "true"]

BLOCKS = " ░▒▓█"
# Both ramps rise evenly in lightness, so that they also work without seeing colour.
TRUE = (
    *((68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141)),
    *((39, 173, 129), (92, 200, 99), (170, 220, 50), (253, 231, 37)),
)  # viridis
INDEXED = (16, 17, 18, 19, 25, 31, 37, 43, 79, 115, 151, 187, 230)  # black, blue, teal, cream
SHADES = 20  # opacity steps of an SVG cell
CELL = 24  # side of a labelled SVG cell, in px
LONGEST = 18  # characters of a label
INSET, SIDE = 0.11, 0.78  # of an outline in its cell


# ---------------------------------------------------------------- labels
def printable(token: str) -> str:
    """The token with every character visible and harmless: " " → ␣, control characters → their pictures."""
    shown = "".join(visible(character) for character in token)
    starts_with_mark = bool(token) and unicodedata.category(token[0]).startswith("M")
    return "◌" + shown if starts_with_mark else shown or "∅"


def visible(character: str) -> str:
    if character.isspace() and unicodedata.category(character) == "Zs":
        return "␣"
    if character.isprintable():
        return character
    return chr(0x2400 + ord(character)) if ord(character) < 32 else "·"


def display_width(text: str) -> int:
    """Columns of a terminal that the text takes: 2 for wide characters, 0 for combining ones."""
    return sum(character_width(character) for character in text)


def character_width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def labels(tokens: Sequence[str]) -> list[str]:
    return [shorten(printable(token)) for token in tokens]


# ---------------------------------------------------------------- terminal
def terminal(
    weights: Float[Tensor, "q k"], columns: Sequence[str], rows: Sequence[str], colour: Colour = "none"
) -> str:
    """The map in lines of text, the scale last. Single characters stand above their columns; longer tokens hang on
    leaders, so that they stay readable:

        ╭ A           ╭ </s>
        │ ╭ man   3 1 │
    """
    top, side = labels(columns), labels(rows)
    width = 1 if len(top) > 40 and all(display_width(label) == 1 for label in top) else 2
    margin = max((display_width(label) for label in side), default=0) + 1
    lines = [" " * margin + line for line in header(top, width)]
    for label, line in zip(side, relative(weights), strict=True):
        lines.append(" " * (margin - 1 - display_width(label)) + f"{label} " + paint(line, width, colour))
    scale = paint([i / 8 for i in range(9)], 1, colour)
    return "\n".join([*(line.rstrip() for line in lines), f"{' ' * margin}{scale} 0 to {shown(peak(weights))}"])


def header(tokens: Sequence[str], width: int) -> list[str]:
    """Leaders for the tokens that do not fit their column, then the line of those that do."""
    single = [len(token) == 1 and display_width(token) <= width for token in tokens]
    if 2 * sum(single) < len(tokens):  # words: the odd full stop hangs with them
        single = [False] * len(tokens)
    lines, line = [], ""
    for token, fits in zip(tokens, single, strict=True):
        if not fits:
            lines.append(line + "╭ " + token)
        line += " " * width if fits else "│" + " " * (width - 1)
    last = (token if fits else "│" for token, fits in zip(tokens, single, strict=True))
    return [*lines, "".join(mark + " " * (width - display_width(mark)) for mark in last)] if any(single) else lines


def paint(line: Sequence[float], width: int, colour: Colour) -> str:
    """Cells of one row, each `width` columns wide; equal neighbours share one escape sequence."""
    if colour == "none":
        return "".join(BLOCKS[round(value * (len(BLOCKS) - 1))] * width for value in line)
    runs = ((code, len(list(same)) * width) for code, same in groupby(shade(value, colour) for value in line))
    return "".join(f"\033[48;{code}m{' ' * count}" for code, count in runs) + "\033[0m"


def shade(value: float, colour: Colour) -> str:
    """The parameters of an escape sequence for a background that stands for a value in 0..1."""
    if colour == "256":
        return f"5;{INDEXED[round(value * (len(INDEXED) - 1))]}"
    place = value * (len(TRUE) - 1)
    below = min(int(place), len(TRUE) - 2)
    mixed = (round(a + (b - a) * (place - below)) for a, b in zip(TRUE[below], TRUE[below + 1], strict=True))
    return "2;" + ";".join(str(channel) for channel in mixed)


# ---------------------------------------------------------------- SVG
def svg(
    weights: Float[Tensor, "q k"],
    columns: Sequence[str],
    rows: Sequence[str],
    title: str = "attention weights",
    links: Links = frozenset(),
) -> str:
    """The labelled map as one SVG element that stands alone or inside a page, where CSS `color` sets its hue.

    Cells that `links` names, as (column, row), are outlined.
    """
    top, side = labels(columns), labels(rows)
    left, above = label_space(side), max(CELL, label_space([label for label in top if len(label) > 1]))
    width, height = CELL * len(top), CELL * len(side)
    right = max(1, CELL * (above > CELL), label_space(top[-1:]) // 2 * (above > CELL))  # the last label leans out
    names = [place_above(label, i) for i, label in enumerate(top)]
    names += [
        f'<text x="-6" y="{CELL * i + CELL / 2:g}" text-anchor="end" dominant-baseline="central">{text(label)}</text>'
        for i, label in enumerate(side)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heat" viewBox="{-left} {-above} {width + left + right} '
        f'{height + above + 1}" width="{width + left + right}" height="{height + above + 1}" color="#0b5cad" '
        f'font-family="system-ui, sans-serif" font-size="14" role="img" aria-label="{text(title)}">'
        f'<g class="names" fill="#777">{"".join(names)}</g>'
        f'<g transform="scale({CELL})">{cells(weights)}{outlines(links)}</g>'
        f'<rect width="{width}" height="{height}" fill="none" stroke="#999" stroke-opacity=".5"/></svg>'
    )


def place_above(label: str, i: int) -> str:
    """Characters stand upright, longer tokens lean back."""
    x = CELL * i + CELL / 2
    turn = (
        'text-anchor="middle"' if len(label) == 1 else f'transform="rotate(-60 {x:g} -6)" dominant-baseline="central"'
    )
    return f'<text x="{x:g}" y="-6" {turn}>{text(label)}</text>'


def label_space(tokens: Sequence[str]) -> int:
    """Room for the longest label at 14 px: about 8 px a column."""
    return 12 + 8 * max((display_width(token) for token in tokens), default=0)


def cells(weights: Float[Tensor, "q k"]) -> str:
    """Unit squares, one path a shade; a shade is an opacity of the current colour, so it suits dark and light pages."""
    paths: dict[int, list[str]] = {}
    for y, line in enumerate(relative(weights)):
        x = 0
        for level, run in groupby(round(value * SHADES) for value in line):
            length = len(list(run))
            if level:
                paths.setdefault(level, []).append(f"M{x} {y}h{length}v1h-{length}z")
            x += length
    drawn = (f'<path fill-opacity="{k / SHADES:g}" d="{"".join(paths[k])}"/>' for k in sorted(paths))
    return f'<g class="cells" fill="currentColor" shape-rendering="crispEdges">{"".join(drawn)}</g>'


def outlines(links: Links) -> str:
    """A square inside each linked cell: a line in the colour of the ink on a wider one in that of the paper, so that it
    is seen on every shade."""
    if not links:
        return ""
    path = "".join(f"M{x + INSET:g} {y + INSET:g}h{SIDE:g}v{SIDE:g}h-{SIDE:g}z" for x, y in sorted(links))
    lines = f'<path class="edge" stroke="#fff" stroke-width=".17" d="{path}"/><path stroke-width=".08" d="{path}"/>'
    return f'<g class="links" fill="none" stroke="#1b2430">{lines}</g>'


def shown(value: float) -> str:
    """Two decimals, or two digits of what is smaller than a tenth."""
    return f"{value:.2f}" if value >= 0.1 or value <= 0 else f"{value:.2g}"


def peak(weights: Float[Tensor, "q k"]) -> float:
    return float(weights.max()) if weights.numel() else 0.0


def relative(weights: Float[Tensor, "q k"]) -> list[list[float]]:
    """Weights over the largest of them: 0..1; what is below 0 is drawn as 0."""
    scaled: list[list[float]] = (weights.clamp(min=0) / (max(peak(weights), 0.0) or 1.0)).tolist()
    return scaled
