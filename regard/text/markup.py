"""HTML as text and tags: every character of a page is in exactly one token, so that joined they are the page."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Literal

TokenKind = Literal["text", "open", "close", "point", "break"]
# Elements within a sentence; the tags of all others end it.
_INLINE = (
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q s small span strike strong sub sup time"
)
INLINE = frozenset((*_INLINE.split(), "tt", "u"))
POINTS = ("img", "input", "wbr")  # within a sentence, and without content
EMPTY = ("area", "base", "br", "col", "embed", "hr", "link", "meta", "param", "source", "track")  # have no end tag
UNTOUCHED = ("script", "style", "pre", "textarea", "template", "noscript")  # what is in them is no text
UNTOUCHED_INLINE = ("code", "kbd", "samp", "var", "svg", "math")


@dataclass(frozen=True)
class Token:
    """A stretch of the page: text, a tag within a sentence, something without width there, or what ends sentences."""

    raw: str
    kind: TokenKind
    name: str = ""


class _Reader(HTMLParser):
    """Notes where each part of the page begins, what it is, and whether its content is to be left alone."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0, *(place + 1 for place, character in enumerate(page) if character == "\n")]
        self.found: list[tuple[int, TokenKind, str, bool]] = []
        self.feed(page)
        self.close()

    def note(self, kind: TokenKind, name: str = "", *, untouched: bool = False) -> None:
        line, column = self.getpos()
        self.found.append((self._lines[line - 1] + column, kind, name, untouched))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        asked = dict(attrs)
        alone = asked.get("translate") == "no" or "notranslate" in (asked.get("class") or "").split()
        alone = alone and tag not in EMPTY
        if tag in POINTS:
            self.note("point")
        elif tag in UNTOUCHED_INLINE or tag in UNTOUCHED or alone:
            self.note("point" if tag in UNTOUCHED_INLINE or tag in INLINE else "break", tag, untouched=True)
        else:
            self.note("open" if tag in INLINE else "break", tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.note("break" if tag in ("br", "hr") else "point")

    def handle_endtag(self, tag: str) -> None:
        self.note("close" if tag in INLINE else "break", tag)

    def handle_data(self, data: str) -> None:  # noqa: ARG002
        self.note("text")

    def handle_charref(self, name: str) -> None:  # noqa: ARG002
        self.note("text")

    def handle_entityref(self, name: str) -> None:  # noqa: ARG002
        self.note("text")

    def handle_comment(self, data: str) -> None:  # noqa: ARG002
        self.note("point")

    def handle_pi(self, data: str) -> None:  # noqa: ARG002
        self.note("point")

    def handle_decl(self, decl: str) -> None:  # noqa: ARG002
        self.note("break")

    def unknown_decl(self, data: str) -> None:  # noqa: ARG002
        self.note("point")


def tokens_of(page: str) -> list[Token]:
    """The page in tokens. An element whose content is left alone (script, code, translate="no") is one token."""
    noted = _Reader(page).found
    if not noted:
        return [Token(page, "break")] if page else []
    starts = [start for start, *_ in noted]
    starts[0] = 0
    parts = [
        (page[start:end], kind, name, untouched)
        for (_, kind, name, untouched), start, end in zip(noted, starts, [*starts[1:], len(page)], strict=True)
    ]
    return list(_whole(parts))


def _whole(parts: Iterable[tuple[str, TokenKind, str, bool]]) -> Iterator[Token]:
    """Everything from the start tag of an element that is left alone to its end tag as one token."""
    kept, element, depth = "", "", 0
    kind: TokenKind = "break"
    for raw, own, name, untouched in parts:
        if not depth and not untouched:
            yield Token(raw, own, name)
            continue
        if not depth:
            kept, kind, element = "", own, name
        kept += raw
        if name == element:
            depth += -1 if raw.startswith("</") else 1
        if not depth:
            yield Token(kept, kind)
    if depth:
        yield Token(kept, kind)
