"""Dates in many languages have one reading each."""

import re
from collections import defaultdict
from datetime import date, timedelta

import pytest
from babel import Locale
from babel.dates import format_date

from regard.data.dates import FIRST, LAST, MOST, Style, dates, locales, named, order, split, styles, swappable
from regard.data.pairs import Pair
from regard.errors import DataError


def month_words(locale: str) -> set[tuple[str, int]]:
    """Every written form of a month, without case and the dot of an abbreviation."""
    months = Locale.parse(locale).months
    forms = [months[context][width] for context in ("format", "stand-alone") for width in ("wide", "abbreviated")]
    return {(form[month].casefold().rstrip("."), month) for form in forms for month in range(1, 13)}


def year_of(year: int) -> list[date]:
    return [date(year, 1, 1) + timedelta(days=i) for i in range(365 + (year % 4 == 0))]


def readings(days: list[date]) -> dict[str, set[date]]:
    """Every string that any style of any locale writes for any of these days, with all that it may mean."""
    found: dict[str, set[date]] = defaultdict(set)
    for style in (style for locale in locales() for style in styles(locale)):
        for day in days:
            if style.clear(day):
                found[style.write(day)].add(day)
    return found


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return dates(20_000, seed=1)


def test_no_string_has_two_readings_in_any_locale_or_style():
    found = readings([day for day in year_of(2024) if day.day <= 12 or day.day == 28])  # 13 to 31 are never months
    assert len(found) > 30_000
    assert [text for text, days in found.items() if len(days) > 1] == []


@pytest.mark.slow
def test_no_string_of_any_kind_of_year_has_two_readings():
    # They begin on each of the seven weekdays, and their last two figures could be a day or a month.
    years = (2001, 2002, 2003, 2004, 2010, 2011, 2012)
    found = readings([day for year in years for day in year_of(year)])
    assert [text for text, days in found.items() if len(days) > 1] == []


def test_no_month_name_means_another_month_in_a_second_locale():
    meanings: dict[str, set[int]] = defaultdict(set)
    for locale in locales():
        for word, month in month_words(locale):
            meanings[word].add(month)
    assert {word: months for word, months in meanings.items() if len(months) > 1} == {}


def test_croatian_would_bring_a_second_reading():
    czech = dict(month_words("cs"))
    assert {word: (czech[word], month) for word, month in month_words("hr") if czech.get(word, month) != month} == {
        "listopad": (11, 10),
        "lis": (11, 10),
        "srp": (8, 7),
    }


def test_a_day_and_month_in_figures_are_used_only_where_their_order_does_not_matter(pairs):
    """Whoever reads 'a/b/year' day first and whoever reads it month first must agree."""
    pattern = re.compile(r"(\d+)[/-](\d+)[/-](\d{4})")
    found = [match for pair in pairs if (match := pattern.search(pair.source))]
    assert len(found) > 300
    for one, other, _ in (match.groups() for match in found):
        assert max(int(one), int(other)) > 12 or int(one) == int(other)


def test_two_figures_for_the_year_stand_after_a_day_and_the_name_of_a_month():
    short = [style for locale in locales() for style in styles(locale) if re.search(r"\byy\b", style.pattern)]
    assert len(short) > 40
    for style in short:
        assert order(style.pattern) == "dMy"
        assert named(style.pattern)
    assert (LAST.year - FIRST.year + 1) <= 100


def test_figures_before_or_after_a_dot_have_one_order_in_all_locales():
    dotted = {
        order(style.pattern)
        for locale in locales()
        for style in styles(locale)
        if not named(style.pattern) and "." in style.pattern
    }
    assert dotted == {"dMy", "yMd"}  # a year of four figures tells them apart


def test_twenty_thousand_strings_are_different_and_each_is_what_some_style_writes_for_its_date(pairs):
    assert len({pair.source for pair in pairs}) == len(pairs)
    every = [style for locale in locales() for style in styles(locale)]
    for pair in pairs[:50]:
        day = date.fromisoformat(pair.target)
        assert FIRST <= day <= LAST
        assert pair.source in {style.write(day) for style in every}


def test_the_long_style_is_what_babel_writes():
    spaces = {0xA0: " ", 0x202F: " ", 0x200E: None, 0x200F: None}
    for locale in locales():
        for day in (date(1987, 11, 5), date(2022, 3, 30)):
            expected = format_date(day, "long", locale).translate(spaces)
            assert expected in {style.write(day) for style in styles(locale)}


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (Style("de", "d. MMMM yy"), "3. März 22"),
        (Style("en", "EEEE, MMMM d, y"), "Thursday, March 3, 2022"),
        (Style("ja", "y年M月d日"), "2022年3月3日"),
        (Style("hi", "d MMMM y", "०१२३४५६७८९"), "३ मार्च २०२२"),
    ],
)
def test_a_style_writes_the_date_as_its_language_does(style, text):
    assert style.write(date(2022, 3, 3)) == text


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("d/M/y", True), ("M/d/y", True), ("dd-MM-y", True), ("d.M.y", False), ("y-MM-dd", False), ("d-MMM-y", False)],
)
def test_an_order_is_swappable_where_countries_differ(pattern, expected):
    assert swappable(pattern) == expected


def test_there_are_forty_locales_with_at_least_four_styles_and_none_counts_other_years():
    assert len(set(locales())) >= 40
    for locale in locales():
        written = {style.write(date(1998, 10, 27)) for style in styles(locale)}
        assert len(written) >= 4
        assert "G" not in "".join(style.pattern for style in styles(locale))


def test_each_locale_has_a_fair_part_of_the_dates(pairs):
    """A script of its own tells the locale: Armenian, Georgian, Greek and Bengali, 1 in 48 each."""
    for script in ("[\u0530-\u058f]", "[\u10a0-\u10ff]", "[\u0370-\u03ff]", "[\u0980-\u09ff]"):
        count = sum(re.search(script, pair.source) is not None for pair in pairs)
        assert 0.011 < count / len(pairs) < 0.026  # 1 in 48, less the strings in figures alone


def test_the_seed_decides_the_dates():
    assert dates(300, seed=5) == dates(300, seed=5)
    assert dates(300, seed=5) == dates(400, seed=5)[:300]
    assert dates(300, seed=5) != dates(300, seed=6)


def test_the_three_parts_of_a_split_share_no_string():
    parts = split(500, 60, 70, seed=3)
    assert [len(part) for part in parts] == [500, 60, 70]
    assert len({pair.source for part in parts for pair in part}) == 630


def test_more_dates_than_there_are_is_refused():
    with pytest.raises(DataError, match="ask for fewer"):
        dates(MOST + 1, seed=0)
