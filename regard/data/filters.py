"""Which pairs are worth learning from, and why the others are not."""

import re
from collections import Counter
from collections.abc import Iterable

from regard.data.options import FilterRules
from regard.data.pairs import Pair

# C1 controls (U+0080 to U+009F) are what Windows-1252 becomes when it is read as Latin-1. Whitespace is no fault.
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
REPLACED = "\N{REPLACEMENT CHARACTER}"


def clean(pairs: Iterable[Pair], rules: FilterRules) -> tuple[list[Pair], dict[str, int]]:
    """The pairs that pass every rule, unchanged and in order, and how many fell to each reason."""
    kept: list[Pair] = []
    dropped: Counter[str] = Counter()
    seen: set[Pair] = set()
    for pair in pairs:
        reason = fault(pair, rules)
        if reason is None and rules.drop_duplicates:
            reason = "duplicate" if pair in seen else None
            seen.add(pair)
        if reason is None:
            kept.append(pair)
        else:
            dropped[reason] += 1
    return kept, dict(dropped)


def fault(pair: Pair, rules: FilterRules) -> str | None:
    """The first rule that the pair breaks; blanks at either end are not counted."""
    source, target = pair.source.strip(), pair.target.strip()
    short, long = sorted((len(source), len(target)))
    if short < rules.min_characters:
        return "empty"
    if garbled(source) or garbled(target):
        return "bad encoding"
    if long > rules.max_characters:
        return "too long"
    if rules.max_ratio is not None and long > rules.ratio_from and long > rules.max_ratio * short:
        return "length ratio"
    if rules.drop_identical and source == target:
        return "identical"
    return None


def garbled(text: str) -> bool:
    """Control characters, or more than one replacement character in twenty: text that was decoded wrongly before us."""
    return CONTROL.search(text) is not None or 20 * text.count(REPLACED) > len(text)
