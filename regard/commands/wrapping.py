"""Texts for a terminal: labelled, wrapped, and harmless."""

import textwrap

WIDTH = 80


def labelled(label: str, text: str, *, room: int) -> str:
    """`label`, then the text beside it in lines of at most 80 columns; the label takes `room` of them."""
    shown = harmless(text) or "(nothing)"
    return textwrap.fill(
        shown, WIDTH, initial_indent=f"{label:<{room}}", subsequent_indent=" " * room, break_on_hyphens=False
    )


def harmless(text: str) -> str:
    """Single blanks between words, and nothing that could steer the terminal."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))
