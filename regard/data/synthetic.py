"""A task that any sequence-to-sequence model must learn in a minute."""

import random

from regard.data.pairs import Pair
from regard.errors import DataError


def reversals(count: int, seed: int, shortest: int = 3, longest: int = 8) -> list[Pair]:
    """`count` different strings of digits, each with itself read backwards: "314" → "413"."""
    possible = sum(10**length for length in range(shortest, longest + 1))
    if count > possible:
        raise DataError(
            f"{count} reversals asked for, found {possible} strings of {shortest} to {longest} digits; ask for fewer"
        )
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(rng.choices("0123456789", k=rng.randint(shortest, longest)))] = None
    return [Pair(digits, digits[::-1]) for digits in found]
