"""What every tokeniser needs to know about characters and bytes."""

import re

SPACE = "\u2581"  # how SentencePiece, and every name we print, shows a space
SURROGATES = "\ud800-\udfff"  # half characters: a str can hold them, UTF-8 cannot

_SURROGATE = re.compile(f"[{SURROGATES}]")


def utf8(text: str) -> bytes:
    """The bytes of `text`; a surrogate, which has none, counts as U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def begins_character(byte: int) -> bool:
    """Whether a UTF-8 byte is the first of its character (the others are 10xxxxxx)."""
    return byte & 0b1100_0000 != 0b1000_0000


def printable(text: str) -> str:
    """`text` as something one can see: ▁ for a space, an escape for what has no shape of its own."""
    shown = text.replace(" ", SPACE)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
