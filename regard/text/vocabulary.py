"""A published vocabulary: their names, and which of our ids stands for which of theirs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from regard.errors import ModelFormatError
from regard.text.special import NAMES

MOST_ROWS = 10_000_000  # of a model; no published vocabulary comes near


def arrange(total: int, special: Sequence[int], last: Sequence[int]) -> tuple[int, ...]:
    """Entry i = their id that our id i stands for: `special`, the others below `total` in their order, `last`.

    -1 in `special` says that they have no such id.
    """
    placed = {*special, *last}
    return (*special, *(id for id in range(total) if id not in placed), *last)


@dataclass(frozen=True)
class Vocabulary:
    """`names` by their id. Whatever is wrong raises a ModelFormatError that lacks the place: the reader adds it."""

    names: tuple[str, ...]
    special: tuple[int, ...]  # their ids of our PAD, UNK, BOS, EOS; -1 where they have none
    added: tuple[int, ...] = ()  # their ids whose names stand for themselves in a text, and in what is decoded
    last: tuple[int, ...] = ()  # the same, but left out of what is decoded: masks and sentinels, our last ids
    unused: int = 0  # rows of the model for which there is no name

    def __post_init__(self) -> None:
        chosen = [id for id in (*self.special, *self.added, *self.last) if id != -1]
        if len(self.special) != len(NAMES) or self.unused < 0 or len(self.names) + self.unused > MOST_ROWS:
            raise ModelFormatError(
                f"{len(self.special)} special ids and {len(self.names)} + {self.unused} rows; "
                f"expected {len(NAMES)} and at most {MOST_ROWS}; copy the files again"
            )
        for id in chosen:
            if not 0 <= id < len(self.names):
                raise ModelFormatError(f"id {id} is outside the {len(self.names)} names; copy the files again")
        if len(set(chosen)) != len(chosen):
            raise ModelFormatError(f"an id has two meanings among {sorted(chosen)[:9]}; copy the files again")
        if len(set(self.names)) != len(self.names):
            twice = next(name for place, name in enumerate(self.names) if name in self.names[:place])
            raise ModelFormatError(f"{twice!r} is there twice, expected each name once; copy the files again")
        if "" in (self.names[id] for id in (*self.added, *self.last)):
            raise ModelFormatError("an added name is empty; copy the files again")

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Entry i = their id that our id i stands for, or -1. Rows without a name come just before `last`."""
        return arrange(len(self.names) + self.unused, self.special, self.last)

    @cached_property
    def shown(self) -> list[str]:
        """What to call each of our ids."""
        theirs = [self.names[id] if id < len(self.names) else f"<unused_{id}>" for id in self.order[len(NAMES) :]]
        return [*NAMES, *theirs]

    @cached_property
    def ours(self) -> dict[str, int]:
        """Our id of each of their names; the special ones are not among them."""
        named = enumerate(self.order[len(NAMES) :], len(NAMES))
        return {self.names[id]: place for place, id in named if id < len(self.names)}

    @cached_property
    def ordinary(self) -> dict[str, int]:
        """`ours` without the names that a text must spell out."""
        verbatim = {self.names[id] for id in (*self.added, *self.last)}
        return {name: id for name, id in self.ours.items() if name not in verbatim}

    def rows(self, total: int) -> "Vocabulary":
        """For a model with `total` rows of theirs: those without a name become ids that no text ever has."""
        if not len(self.names) <= total <= MOST_ROWS:
            raise ModelFormatError(
                f"a vocabulary of {len(self.names)} names for a model of {total} rows; "
                "expected at least as many rows as names: give the tokeniser of this very model"
            )
        return replace(self, unused=total - len(self.names))

    def parts(self, text: str) -> Iterator[tuple[int, str, int | None]]:
        """(start, part, id): a verbatim name with its id, or a stretch of ordinary text with None; nothing is empty."""
        if self._verbatim is None:
            if text:
                yield 0, text, None
            return
        start = 0
        for part in self._verbatim.split(text):
            if part:
                yield start, part, self._spelled.get(part)
            start += len(part)

    def content(self) -> dict[str, Any]:
        """For JSON; `parse` is the way back."""
        sets = {"special": self.special, "added": self.added, "last": self.last}
        return {"names": list(self.names), **{key: list(ids) for key, ids in sets.items()}, "unused": self.unused}

    @cached_property
    def _spelled(self) -> dict[str, int]:
        return {self.names[id]: self.ours[self.names[id]] for id in (*self.added, *self.last)}

    @cached_property
    def _verbatim(self) -> re.Pattern[str] | None:
        longest_first = sorted(self._spelled, key=lambda name: (-len(name), name))
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None


def parse(content: Any) -> Vocabulary:
    """What `Vocabulary.content` wrote."""
    match content:
        case {"names": [*names], "special": [*special], "added": [*added], "last": [*last], "unused": int(unused)}:
            if strings(names) and integers([*special, *added, *last, unused]):
                return Vocabulary(tuple(names), tuple(special), tuple(added), tuple(last), unused)
    raise ModelFormatError("no vocabulary in it, expected names, special, added, last and unused; copy the file again")


def by_id(ids: Any) -> tuple[str, ...]:
    """The names of {name: id} in the order of their ids, which are 0, 1, … without a gap."""
    if not isinstance(ids, dict) or not ids:
        raise ModelFormatError("expected names with their ids; copy the file again")
    names = [""] * len(ids)
    taken = bytearray(len(ids))
    for name, id in ids.items():
        if not integers([id]) or not 0 <= id < len(ids):
            raise ModelFormatError(f"{name!r} has id {id!r}, expected one of 0 to {len(ids) - 1}; copy the file again")
        if taken[id]:
            raise ModelFormatError(f"{name!r} and {names[id]!r} have the same id {id}; copy the file again")
        names[id], taken[id] = name, 1
    return tuple(names)


def strings(found: Sequence[Any]) -> bool:
    return all(isinstance(each, str) for each in found)


def integers(found: Sequence[Any]) -> bool:
    return all(isinstance(each, int) and not isinstance(each, bool) for each in found)
