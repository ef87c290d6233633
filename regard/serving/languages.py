"""Codes of languages: which one a client means, what people call it."""

from collections.abc import Iterable

from babel import Locale, UnknownLocaleError

ALIASES = {"pb": "pt-br", "zh": "zh-hans", "zt": "zh-hant"}  # older codes of the API


def canonical(code: str) -> str:
    """The one code of all that mean the same: lower case, a hyphen, the newer of two names."""
    found = code.strip().lower().replace("_", "-")
    return ALIASES.get(found, found)


def name(code: str) -> str:
    """ "German" of de; the code itself where nobody has a name for it."""
    try:
        found = Locale.parse(code, sep="-").get_display_name("en")
    except (ValueError, UnknownLocaleError):
        return code
    return found or code


def listed(directions: Iterable[tuple[str, str]]) -> list[dict[str, object]]:
    """Every source with its targets, as `/languages` has it: sorted by what people call them."""
    targets: dict[str, set[str]] = {}
    for source, target in directions:
        targets.setdefault(source, {source}).add(target)
    return [{"code": code, "name": name(code), "targets": sorted(targets[code])} for code in sorted(targets, key=name)]
