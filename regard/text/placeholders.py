"""What a translation must not touch: codes of format strings, tags, addresses, numbers with units, given terms."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, get_args

from regard.text.words import Terms

Kind = Literal["format", "brace", "tag", "url", "email", "measure", "term"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_UNITS = (
    "km/h m/s mph rpm km² m² cm² mm² m³ cm³ mm³ km m dm cm mm µm μm nm mi ft yd kg mg µg μg g lb lbs oz ha "
    "ml mL cl dl hl l L ms µs μs ns min h °C °F ° % ‰ kWh MWh GWh Wh kW MW GW W kV mV V mAh Ah mA kHz MHz GHz Hz "
    "kbit/s Mbit/s Gbit/s kbps Mbps Gbps kB KB MB GB TB PB KiB MiB GiB TiB dB hPa kPa MPa Pa bar psi kJ MJ J "
    "kcal cal Nm kN px pt dpi fps"
)
_UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS.split(), key=len, reverse=True))
_ATTRIBUTE = r"\s+[A-Za-z_:@][\w:.@-]*(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=]+))?"
_PATTERNS: dict[Kind, re.Pattern[str]] = {
    "format": re.compile(
        r"%%"
        r"|%\([A-Za-z_][\w.]*\)[-+#0]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa](?![A-Za-z0-9_])"  # %(name)s
        r"|%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGaAcCsSpn@](?![A-Za-z0-9_])"
    ),
    "brace": re.compile(r"[$#]?\{\{[^{}\n]{1,100}\}\}|[$#%@]?\{[^\s{}]{0,100}\}"),  # {{ x }}, ${x}, {name}, {0:.2f}, {}
    "tag": re.compile(rf"</?[A-Za-z][A-Za-z0-9:-]*(?:{_ATTRIBUTE})*\s*/?>"),
    "url": re.compile(r"(?:https?://|ftp://|www\.)[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*[A-Za-z0-9\-_~/#@$&+=%]"),
    # Only where no such character is before: else a long run of letters would be tried from each of them.
    "email": re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    "measure": re.compile(rf"(?<![\w.,])[0-9]+(?:[.,'’\u00a0\u202f][0-9]+)*[ \u00a0\u202f]?(?:{_UNIT})(?!\w)"),
}
_UNNAMED = re.compile(r"%(?!\d+\$)[^%({].*|\{\}")  # codes that are told apart by their order alone


class Placeholder(NamedTuple):
    """text[start:end] of the text that it was found in."""

    start: int
    end: int
    kind: Kind
    text: str


class Placeholders:
    """Finds placeholders of these kinds, and terms that are not to be translated.

    A term is found as it is written, where it is no part of a longer word.
    """

    def __init__(self, kinds: Collection[Kind] = KINDS, terms: Sequence[str] = ()) -> None:
        self._patterns = [(kind, pattern) for kind, pattern in _PATTERNS.items() if kind in kinds]
        self._terms = Terms({term: term for term in terms})

    def find(self, text: str) -> list[Placeholder]:
        """In order and disjoint; of two that overlap, the longer one."""
        found = [
            Placeholder(*match.span(), kind, match[0])
            for kind, pattern in self._patterns
            for match in pattern.finditer(text)
        ]
        found += [
            Placeholder(start, end, "term", term)
            for start, end, term in self._terms.find(text)
            if text[start:end] == term
        ]
        taken, chosen = bytearray(len(text)), []
        for one in sorted(found, key=lambda one: (one.start - one.end, one.start)):
            if not any(taken[one.start : one.end]):
                taken[one.start : one.end] = b"\1" * (one.end - one.start)
                chosen.append(one)
        return sorted(chosen)

    def are_kept(self, source: str, output: str) -> bool:
        """Whether the output has every placeholder of the source as often, and none that the source lacks.

        Codes that have no name (%s, {}) and tags also keep their order. A number with a unit may be written as another
        language does (3.5 kg, 3,5 kg), and there may be more of them: "ten metres" becomes "10 m".
        """
        given, found = self.find(source), self.find(output)
        exact = [Counter(one.text for one in some if one.kind != "measure") for some in (given, found)]
        order = [[one.text for one in some if in_order(one)] for some in (given, found)]
        measures = [Counter(_plain(one.text) for one in some if one.kind == "measure") for some in (given, found)]
        return exact[0] == exact[1] and order[0] == order[1] and measures[0] <= measures[1]


def in_order(placeholder: Placeholder) -> bool:
    """Whether this one may not change places with others of its kind."""
    return placeholder.kind == "tag" or bool(_UNNAMED.fullmatch(placeholder.text))


def _plain(measure: str) -> str:
    """3,5 kg and 3.5 kg as the same: without spaces, and one mark for every separator between figures."""
    return re.sub(r"(?<=\d)[.,'’](?=\d)", ".", re.sub(r"\s", "", measure)).replace("μ", "µ")


def merged(placeholders: Sequence[Placeholder]) -> list[tuple[int, int]]:
    """The spans of the placeholders of one text; those that touch are one."""
    spans: list[tuple[int, int]] = []
    for one in placeholders:
        if spans and spans[-1][1] == one.start:
            spans[-1] = spans[-1][0], one.end
        else:
            spans.append((one.start, one.end))
    return spans
