"""The embedded task: dates as people write them in some fifty languages → ISO 8601. "3. März 22" → "2022-03-03".

Made from the CLDR data that Babel carries, so it needs no download and never ends. No string has two readings:
- a day and a month in figures alone, divided by "/" or "-" and before the year, count only where their order does not
  matter: America writes 3/4 for what Europe writes 4/3. Dots are day first in every locale here;
- two figures for the year only after the name of a month and a day before it; they mean 1950 to 2049;
- no month name of one locale means another month in a second one. Croatian is therefore not here: its "listopad" is
  October, and that of Czech and Polish is November;
- patterns with an era are left out, since those locales count the years of another calendar.
"""

import random
import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

from regard.data.pairs import Pair
from regard.errors import DataError

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)  # a century: two figures name each of its years once
MOST = 1_000_000  # a tenth of what there is: far beyond it the search for unused strings grows slow
MONTH, YEAR, FIELD = re.compile("[ML]+"), re.compile("y+"), re.compile("d+|[ML]+|y+")
QUOTED = re.compile("'[^']*'")
LOCALES = (
    "af ar be bg bn ca cs cy da de el en en_GB es et eu fa fi fil fr he hi hu hy id is it ja ka ko lv mr ms nb nl pl "
    "pt ro ru sk sl sr sv tr uk ur vi zh"
)
NATIVE_DIGITS = {
    "ar": "٠١٢٣٤٥٦٧٨٩",
    "bn": "০১২৩৪৫৬৭৮৯",
    "fa": "۰۱۲۳۴۵۶۷۸۹",
    "hi": "०१२३४५६७८९",
    "mr": "०१२३४५६७८९",
    "ur": "۰۱۲۳۴۵۶۷۸۹",
}
PLAIN = {0xA0: " ", 0x202F: " ", 0x200E: None, 0x200F: None}  # narrow spaces and direction marks that nobody types


@dataclass(frozen=True, slots=True)
class Style:
    """One way to write a date: a CLDR pattern in the words of a locale, in Western or its own digits."""

    locale: str
    pattern: str
    digits: str = "0123456789"

    def write(self, day: date) -> str:
        from babel.dates import format_date

        return str(format_date(day, self.pattern, self.locale)).translate(_plain(self.digits))

    def clear(self, day: date) -> bool:
        """Whether what `write` gives has one reading only."""
        return not swappable(self.pattern) or day.day > 12 or day.day == day.month


def locales() -> tuple[str, ...]:
    return tuple(LOCALES.split())


def dates(count: int, seed: int) -> list[Pair]:
    """`count` different strings with their ISO dates: locale, style and day drawn evenly, the last over a century."""
    if count > MOST:
        raise DataError(f"{count} dates asked for, found at most {MOST}; ask for fewer")
    rng = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        style = rng.choice(styles(rng.choice(locales())))
        day = FIRST + timedelta(days=rng.randrange((LAST - FIRST).days + 1))
        if style.clear(day):
            found.setdefault(style.write(day), day.isoformat())
    return [Pair(text, iso) for text, iso in found.items()]


def split(train: int, valid: int, test: int, seed: int) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Three sets that share no string."""
    pairs = dates(train + valid + test, seed)
    return pairs[:train], pairs[train : train + valid], pairs[train + valid :]


@cache
def styles(locale: str) -> tuple[Style, ...]:
    """The CLDR patterns full, long, medium, short and weekday, a short year after a month's name, native digits."""
    from babel import Locale

    data = Locale.parse(locale)
    patterns = [data.date_formats[name].pattern for name in ("full", "long", "medium", "short")]
    patterns.append(data.datetime_skeletons["yMMMEd"].pattern)
    patterns = [YEAR.sub("y", pattern) for pattern in patterns if "G" not in pattern]
    patterns += [YEAR.sub("yy", pattern) for pattern in patterns[1:3] if order(pattern) == "dMy" and named(pattern)]
    unique = dict.fromkeys(patterns)
    western = [Style(locale, pattern) for pattern in unique]
    native = NATIVE_DIGITS.get(locale)
    return tuple(western + [Style(locale, pattern, native) for pattern in unique if native])


def order(pattern: str) -> str:
    """The fields in the order of the pattern: dMy, Mdy or yMd."""
    return "".join(field[0].replace("L", "M") for field in FIELD.findall(QUOTED.sub("", pattern)))


def named(pattern: str) -> bool:
    """Whether the month is a word."""
    return any(len(field) > 2 for field in MONTH.findall(QUOTED.sub("", pattern)))


@cache
def swappable(pattern: str) -> bool:
    """Whether day and month are figures in an order that differs from country to country."""
    divided = any(sign in QUOTED.sub("", pattern) for sign in "/-")
    return divided and not named(pattern) and not order(pattern).startswith("y")


@cache
def _plain(digits: str) -> dict[int, str | None]:
    return PLAIN | dict(zip(map(ord, "0123456789"), digits, strict=True))
