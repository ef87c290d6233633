"""HTML in another language: text is translated, tags are put back around the words that stand for theirs."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import groupby, pairwise

from regard.text.markup import Token, tokens_of
from regard.text.sentences import gap, is_sentence, split_sentences

Align = Callable[[Sequence[str], Sequence[str]], list[tuple[int, int]]]  # source words, target words → linked places
DEEPEST = 50  # tags within tags of one sentence; more are treated as what ends a sentence

_WORD = re.compile(r"\S+")
_LEADING, _TRAILING = "\"'“„«([¿¡", ".,;:!?…\"'”»)]。、！？"  # marks that belong to a sentence rather than to its words
_BLANKS = str.maketrans("\n\r\t\f", "    ")  # white space is all the same in HTML


@dataclass
class Element:
    """A tag pair around text[start:end] of its sentence; without an end tag something that has no width."""

    start: int
    end: int
    open: str
    close: str = ""
    inside: "list[Element]" = field(default_factory=list)


@dataclass(frozen=True)
class Sentence:
    """A sentence as text, and the elements in it."""

    text: str
    elements: tuple[Element, ...]


Unit = str | Sentence  # a part of the page that stays, or one that is translated


def translate_page(
    page: str, translate: Callable[[list[str]], list[str]], align: Align, language: str | None = None
) -> str:
    """The page with its sentences translated, all in one call.

    Tags, attributes and comments stay as they are, and so does what is in script, style, pre and code. Tags within a
    sentence go around the words that `align` links to theirs; nothing is lost, and nesting stays. A page that is one
    line of text, without & or < and with single spaces, becomes what the plain text becomes.
    """
    found = read_page(page, language)
    return found.joined(translate(found.sentences), align)


@dataclass(frozen=True)
class Page:
    """A page as sentences and what is between them."""

    units: tuple[Unit, ...]

    @property
    def sentences(self) -> list[str]:
        return [" ".join(unit.text.split()) for unit in self.units if isinstance(unit, Sentence)]

    def joined(self, translations: Sequence[str], align: Align) -> str:
        """The page with its sentences translated; `align` is asked about those that have tags in them."""
        found, fresh, before = [], iter(translations), ("", "")
        for unit in self.units:
            if isinstance(unit, str):
                found.append(unit)
                before = ("", "") if unit else before
            else:
                said = next(fresh)
                found += [gap(*before, said) if before[0] else "", _render(unit, said, align)]
                before = unit.text, said
        return "".join(found)


def read_page(page: str, language: str | None = None) -> Page:
    units = [unit for run, tokens in _runs(page) for unit in (_units(tokens, language) if run else [_raw(tokens)])]
    return Page(tuple(units))


def by_place(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """An Align that knows no language: equal words are linked, the others by how far into the sentence they are."""
    if not source or not target:
        return []
    places = {word: place for place, word in enumerate(target)}
    diagonal = [round(i * (len(target) - 1) / max(1, len(source) - 1)) for i in range(len(source))]
    return [(i, places.get(word, diagonal[i])) for i, word in enumerate(source)]


def _runs(page: str) -> Iterator[tuple[bool, list[Token]]]:
    """Tokens that may make up sentences (true), and those between them."""
    for within, tokens in groupby(tokens_of(page), key=lambda token: token.kind != "break"):
        yield within, list(tokens)


def _raw(tokens: Sequence[Token]) -> str:
    return "".join(token.raw for token in tokens)


def _units(tokens: Sequence[Token], language: str | None) -> list[Unit]:
    """A run as sentences and what is between them; a tag that has no partner in its sentence ends it."""
    if not any(map(str.isalnum, _text(tokens))):
        return [_raw(tokens)]
    pairs = _pairs(tokens)
    pieces = split_sentences(_text(tokens).translate(_BLANKS), language)
    breaks = _lonely(tokens, pairs) | _crossing(tokens, pairs, pieces)
    if not breaks:
        return _sentences(tokens, pairs, pieces)
    found: list[Unit] = []
    for before, place in pairwise([-1, *sorted(breaks), len(tokens)]):
        found += _units(tokens[before + 1 : place], language)
        found += [tokens[place].raw] if place < len(tokens) else []
    return found


def _text(tokens: Sequence[Token]) -> str:
    return "".join(unescape(token.raw) for token in tokens if token.kind == "text")


def _offsets(tokens: Sequence[Token]) -> list[int]:
    """How much text is before each token."""
    found, offset = [], 0
    for token in tokens:
        found.append(offset)
        offset += len(unescape(token.raw)) if token.kind == "text" else 0
    return found


def _pairs(tokens: Sequence[Token]) -> dict[int, int]:
    """Start tags with their end tags, by place; no pair crosses another, and none is deeper than `DEEPEST`."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    names = Counter[str]()
    for place, token in enumerate(tokens):
        if token.kind == "open":
            waiting.append(place)
            names[token.name] += 1
        elif token.kind == "close" and names[token.name]:
            opened = waiting.pop()
            names[tokens[opened].name] -= 1
            while tokens[opened].name != token.name:
                opened = waiting.pop()
                names[tokens[opened].name] -= 1
            if len(waiting) < DEEPEST:
                found[opened] = place
    return found


def _lonely(tokens: Sequence[Token], pairs: dict[int, int]) -> set[int]:
    paired = {*pairs, *pairs.values()}
    return {place for place, token in enumerate(tokens) if token.kind in ("open", "close") and place not in paired}


def _crossing(tokens: Sequence[Token], pairs: dict[int, int], pieces: Sequence[str]) -> set[int]:
    """The tags of elements that hold the end of one sentence and the beginning of another."""
    offsets, spans = _offsets(tokens), _spans(pieces)
    found: set[int] = set()
    for opened, closed in pairs.items():
        touched = [None for start, end in spans if start < offsets[closed] and offsets[opened] < end]
        if len(touched) > 1:
            found |= {opened, closed}
    return found


def _spans(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Where the sentences among the pieces begin and end."""
    found, offset = [], 0
    for piece in pieces:
        if is_sentence(piece):
            found.append((offset, offset + len(piece)))
        offset += len(piece)
    return found


def _sentences(tokens: Sequence[Token], pairs: dict[int, int], pieces: Sequence[str]) -> list[Unit]:
    """The sentences with their elements, and between them the white space and what has no words, as they were."""
    text, spans = _text(tokens), _spans(pieces)
    within: list[list[Element]] = [[] for _ in spans]
    between: list[list[Element]] = [[] for _ in (*spans, None)]
    for element in _tree(tokens, pairs):
        home = _home(element, spans)
        if home is None:
            between[sum(end <= element.start for _, end in spans)].append(element)
        else:
            _clip(element, *spans[home])
            within[home].append(element)
    found: list[Unit] = []
    before = 0
    for (start, end), elements, bare in zip(spans, within, between[:-1], strict=True):
        found.append(_between(text, before, start, bare))
        found.append(Sentence(text[start:end].translate(_BLANKS), tuple(elements)))
        before = end
    return [*found, _between(text, before, len(text), between[-1])]


def _between(text: str, start: int, end: int, elements: Sequence[Element]) -> str:
    """text[start:end], which is white space, with elements that have no words in it."""
    found, cursor = "", start
    for element in elements:
        place = min(max(element.start, cursor), end)
        found += escape(text[cursor:place], quote=False) + _bare(element)
        cursor = place
    return found + escape(text[cursor:end], quote=False)


def _bare(element: Element) -> str:
    return element.open + "".join(map(_bare, element.inside)) + element.close


def _tree(tokens: Sequence[Token], pairs: dict[int, int]) -> list[Element]:
    offsets = _offsets(tokens)
    roots: list[Element] = []
    around: list[Element] = []
    for place, token in enumerate(tokens):
        if token.kind == "close":
            around.pop()
        elif token.kind in ("open", "point"):
            partner = pairs.get(place, place)
            close = tokens[partner].raw if partner != place else ""
            element = Element(offsets[place], offsets[partner], token.raw, close)
            (around[-1].inside if around else roots).append(element)
            if close:
                around.append(element)
    return roots


def _home(element: Element, spans: Sequence[tuple[int, int]]) -> int | None:
    """The sentence that an element is in; none if it has no text of one and is not in the middle of one either."""
    for place, (start, end) in enumerate(spans):
        overlap = start < element.end and element.start < end
        if overlap and (element.start < element.end or start < element.start):
            return place
    return None


def _clip(element: Element, start: int, end: int) -> None:
    """Places counted from the beginning of the sentence, and within it."""
    element.start = min(max(element.start, start), end) - start
    element.end = min(max(element.end, start), end) - start
    for inner in element.inside:
        _clip(inner, start, end)


def _render(sentence: Sentence, said: str, align: Align) -> str:
    if not sentence.elements:
        return escape(said, quote=False)
    source, target = list(_WORD.finditer(sentence.text)), list(_WORD.finditer(said))
    links = align([word[0] for word in source], [word[0] for word in target])
    return _Placing(sentence.text, said, source, target, links).write(sentence.elements, 0, len(said))


@dataclass(frozen=True)
class _Placing:
    """Where the elements of a sentence go in its translation."""

    text: str
    said: str
    source: Sequence[re.Match[str]]
    target: Sequence[re.Match[str]]
    links: Sequence[tuple[int, int]]

    def write(self, elements: Sequence[Element], start: int, end: int) -> str:
        """said[start:end] with the elements in it: in the order of their new places, and none across another."""
        placed = sorted(((*self.span(element), i, element) for i, element in enumerate(elements)), key=lambda p: p[:3])
        found, cursor = "", start
        for left, right, _, element in placed:
            left = min(max(left, cursor), end)
            right = min(max(right, left), end)
            found += escape(self.said[cursor:left], quote=False) + self.space(element, left) + element.open
            found += self.write(element.inside, left, right) + element.close
            cursor = right
        return found + escape(self.said[cursor:end], quote=False)

    def space(self, element: Element, place: int) -> str:
        """One before something without width, if there was one and it would stand behind a word."""
        spaced = element.start == element.end > 0 and self.text[element.start - 1].isspace()
        return " " if spaced and place > 0 and not self.said[place - 1].isspace() else ""

    def span(self, element: Element) -> tuple[int, int]:
        """The characters of the translation that an element goes around; marks at its ends only if it had some."""
        words = [i for i, word in enumerate(self.source) if word.start() < element.end and element.start < word.end()]
        if (element.start, element.end) == (0, len(self.text)) and words:
            return 0, len(self.said)
        if element.start == element.end or not words or not self.target:
            place = self.after(element.start)
            return place, place
        linked = [j for i, j in self.links if i in words] or [self.diagonal(i) for i in words]
        left, right = self.target[min(linked)].start(), self.target[max(linked)].end()
        own = self.text[element.start : element.end].strip()
        if own[0] not in _LEADING:
            left += len(self.said[left:right]) - len(self.said[left:right].lstrip(_LEADING))
        if own[-1] not in _TRAILING:
            right -= len(self.said[left:right]) - len(self.said[left:right].rstrip(_TRAILING))
        return left, right

    def after(self, place: int) -> int:
        """Where something without width goes: behind the last word that stands for the word before it."""
        before = [i for i, word in enumerate(self.source) if word.start() < place]
        if not before or not self.target:
            return 0
        linked = [j for i, j in self.links if i == before[-1]] or [self.diagonal(before[-1])]
        word = self.target[max(linked)]
        return word.start() + len(word[0].rstrip(_TRAILING))

    def diagonal(self, place: int) -> int:
        return round(place * (len(self.target) - 1) / max(1, len(self.source) - 1))
