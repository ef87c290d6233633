"""A table of what was taken for what, as lines of text."""

from collections.abc import Sequence

from regard.evaluation.accuracy import Counts, confused
from regard.explaining.heatmap import display_width, printable, shorten

LARGEST = 12  # classes of a table that fits a terminal
NAMED = 10  # mistakes that are named where no table fits


def confusion_lines(counts: Counts, labels: Sequence[str]) -> list[str]:
    """A row for each actual label, a column for what it was taken for; of many labels, the most frequent mistakes."""
    names = [shorten(printable(label)) for label in labels]
    if len(names) > LARGEST:
        mistakes = confused(counts)[:NAMED]
        return [f"{names[actual]} taken for {names[taken]}: {count}" for actual, taken, count in mistakes]
    width = max(*map(display_width, names), len(str(counts.max()))) + 2
    rows = [[right(name, width) for name in ["", *names]]]
    for name, row in zip(names, counts.tolist(), strict=True):
        rows.append([right(cell, width) for cell in [name, *(str(count) if count else "·" for count in row)]])
    return ["rows: what it is; columns: what it was taken for", *("".join(row) for row in rows)]


def right(cell: str, width: int) -> str:
    return " " * (width - display_width(cell)) + cell
