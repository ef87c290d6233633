"""What was read and what was left out, which part is held out, and where files are: the same for every kind of data."""

import hashlib
import heapq
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.errors import DataError

GIVEN, CARVED = "given", "carved out of training"


@dataclass(frozen=True)
class Account:
    """read = kept + Σ dropped."""

    name: str
    read: int
    kept: int
    dropped: dict[str, int]
    unit: str = "pairs"

    def without(self, reason: str, count: int) -> "Account":
        """The same after `count` more pairs were left out, such as those with too many tokens."""
        dropped = Counter(self.dropped) + Counter({reason: count})
        return replace(self, kept=self.kept - count, dropped=dict(dropped))

    def line(self) -> str:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in Counter(self.dropped).most_common())
        return f"{self.name}: {self.kept:,} of {self.read:,} {self.unit}" + (
            f"; left out: {reasons}" if reasons else ""
        )


def together(accounts: Sequence[Account]) -> Account:
    """One account of several that count the same things."""
    dropped = sum((Counter(account.dropped) for account in accounts), Counter[str]())
    read, kept = sum(account.read for account in accounts), sum(account.kept for account in accounts)
    return Account(" + ".join(account.name for account in accounts), read, kept, dict(dropped), accounts[0].unit)


@dataclass(frozen=True)
class Report:
    corpora: tuple[Account, ...]
    validation: Account
    origin: str  # of the validation pairs: GIVEN or CARVED
    notes: tuple[str, ...] = ()  # what else happened to what was kept

    def lines(self) -> list[str]:
        accounts = [account.line() for account in self.corpora]
        return [*accounts, f"{self.validation.line()} ({self.origin})", *self.notes]

    def to_json(self) -> dict[str, Any]:
        def plain(account: Account) -> dict[str, Any]:
            return {"name": account.name, "read": account.read, "kept": account.kept, "dropped": dict(account.dropped)}

        return {
            "corpora": [plain(account) for account in self.corpora],
            "validation": plain(self.validation) | {"origin": self.origin},
            **({"notes": list(self.notes)} if self.notes else {}),
        }


def hold_out(keys: Collection[str], size: int | None, seed: int, unit: str) -> list[str]:
    """`size` of the different keys (none: 5 %, at most 1000): those with the smallest hash, in its order."""
    wanted = size if size is not None else min(1000, max(1, len(keys) // 20))
    if wanted >= len(keys):
        raise DataError(
            f"data.valid_size: {wanted} validation {unit} cannot be carved out of {len(keys)} different sources; "
            f"give more data, fewer validation {unit}, or a validation corpus of its own"
        )
    return heapq.nsmallest(wanted, keys, key=lambda key: _rank(key, seed))


def _rank(key: str, seed: int) -> tuple[bytes, str]:
    return hashlib.blake2b(f"{seed}\n{key}".encode(), digest_size=8).digest(), key


def resolve(path: Path) -> Path:
    """The path itself where it exists, else the same path beneath the folder that REGARD_DATA names."""
    path = path.expanduser()
    root = os.environ.get("REGARD_DATA")
    if path.exists():
        return path
    if path.is_absolute() or not root:
        hint = "" if path.is_absolute() else ", or set REGARD_DATA to the folder that holds it"
        raise DataError(f"{path}: no such file; check the path{hint}")
    beneath = Path(root).expanduser() / path
    if not beneath.exists():
        raise DataError(f"{path}: no such file, neither here nor beneath REGARD_DATA ({root}); check the path")
    return beneath
