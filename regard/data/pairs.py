"""The unit of a parallel corpus."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pair:
    """`alignment`: which words are links ("0-0 1-2"), if that is known; two pairs of the same texts are equal."""

    source: str
    target: str
    alignment: str | None = field(default=None, compare=False)
