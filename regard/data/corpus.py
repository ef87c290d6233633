"""From a recipe's corpora to training and validation pairs, with an account of every pair that was left out."""

import hashlib
import heapq
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.data.filters import clean
from regard.data.options import BadLines, CorpusOptions, DataOptions, FilterRules
from regard.data.pairs import Pair
from regard.data.readers import read_jsonl, read_parallel, read_tsv
from regard.errors import DataError

GIVEN, CARVED = "given", "carved out of training"


@dataclass(frozen=True)
class Corpus:
    pairs: list[Pair]
    weight: float
    name: str


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


@dataclass(frozen=True)
class Loaded:
    corpora: tuple[Corpus, ...]
    validation: list[Pair]
    report: Report


def load_corpora(options: DataOptions, seed: int = 0) -> Loaded:
    """Training corpora and validation pairs, disjoint in their sources when the latter are carved out."""
    if not options.corpora:
        raise DataError("data.corpora: found no corpus; give source and target, a tsv file or a jsonl file")
    loaded = [_load(corpus, options.filters, options.bad_lines) for corpus in options.corpora]
    corpora, accounts = tuple(c for c, _ in loaded), tuple(a for _, a in loaded)
    _refuse_empty(accounts)
    if options.valid is not None:
        # A test of quality takes the pairs as they come: long, repeated and lopsided ones too.
        rules = FilterRules(max_ratio=None, drop_duplicates=False, max_characters=options.filters.max_characters)
        valid, account = _load(options.valid, rules, options.bad_lines)
        _refuse_empty((account,))
        return Loaded(corpora, valid.pairs, Report(accounts, account, GIVEN))
    validation = carve(corpora, options.valid_size, seed)
    taken = {pair.source for pair in validation}
    rest = tuple(replace(c, pairs=[pair for pair in c.pairs if pair.source not in taken]) for c in corpora)
    accounts = tuple(
        a.without("held out", len(before.pairs) - len(after.pairs))
        for a, before, after in zip(accounts, corpora, rest, strict=True)
    )
    account = Account("validation", len(validation), len(validation), {})
    return Loaded(rest, validation, Report(accounts, account, CARVED))


def carve(corpora: Sequence[Corpus], size: int | None, seed: int) -> list[Pair]:
    """`size` pairs of different sources (none: 5 %, at most 1000), the same ones in whatever order the pairs come.

    The sources with the smallest keyed hash are taken, so a corpus that grows keeps most of its validation pairs.
    """
    firsts: dict[str, Pair] = {}
    for corpus in corpora:
        for pair in corpus.pairs:
            known = firsts.setdefault(pair.source, pair)
            if pair.target < known.target:
                firsts[pair.source] = pair
    return [firsts[source] for source in hold_out(firsts, size, seed, "pairs")]


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


def _load(options: CorpusOptions, rules: FilterRules, bad_lines: BadLines) -> tuple[Corpus, Account]:
    unreadable: Counter[str] = Counter()
    pairs, dropped = clean(_read(options, bad_lines, unreadable), rules)
    every = Counter(dropped) + unreadable
    name = " + ".join(str(path) for path in options.files)
    account = Account(name, read=len(pairs) + every.total(), kept=len(pairs), dropped=dict(every))
    return Corpus(pairs, options.weight, name), account


def _read(options: CorpusOptions, bad_lines: BadLines, dropped: Counter[str]) -> Iterator[Pair]:
    files = [resolve(path) for path in options.files]
    if options.tsv is not None:
        return read_tsv(files[0], bad_lines, dropped)
    if options.jsonl is not None:
        return read_jsonl(files[0], options.source_key, options.target_key, bad_lines, dropped)
    return read_parallel(files[0], files[1], bad_lines, dropped)


def _refuse_empty(accounts: Iterable[Account]) -> None:
    for account in accounts:
        if account.kept == 0:
            reason, count = Counter(account.dropped).most_common(1)[0]
            raise DataError(
                f'{account.name}: none of {account.read} pairs is left; most ({count}) fell to "{reason}"; '
                "check the files, or loosen data.filters"
            )
