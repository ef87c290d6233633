"""The unit of a parallel corpus."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    source: str
    target: str
