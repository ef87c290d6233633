"""Text into HTML, so that it stays text."""

from html import escape
from unicodedata import category


def text(value: str) -> str:
    """Escaped; characters that a file of HTML cannot hold (controls, half surrogates) become U+FFFD."""
    return escape("".join("�" if category(c) in {"Cc", "Cs"} and c not in "\t\n" else c for c in value))
