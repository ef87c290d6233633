"""The names that examples are sorted under, and their ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from regard.errors import DataError

SHOWN = 12  # known labels that a line names


@dataclass(frozen=True)
class Labels:
    """names[id]: in the order of the alphabet, or of the numbers where all of them are."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, found: Iterable[str], where: str) -> "Labels":
        """Each label once; a choice needs two."""
        names = sorted(set(found))
        if len(names) < 2:
            shown = ", ".join(map(repr, names)) or "none"
            raise DataError(f"{where}: found {shown}, expected at least two different labels; add examples of another")
        if all(name.isdecimal() for name in names):
            names.sort(key=int)
        return cls(tuple(names))

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, found: Sequence[str], where: str) -> Int64[np.ndarray, " examples"]:
        """The id of each label; one that training has not seen is refused."""
        known = {name: id for id, name in enumerate(self.names)}
        for label in found:
            if label not in known:
                more = f" and {len(self) - SHOWN} more" if len(self) > SHOWN else ""
                names = ", ".join(map(repr, self.names[:SHOWN])) + more
                raise DataError(f"{where}: found label {label!r}, which training does not have; known are {names}")
        return np.array([known[label] for label in found], dtype=np.int64)
