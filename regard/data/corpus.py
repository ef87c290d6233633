"""From a recipe's corpora to training and validation pairs, with an account of every pair that was left out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from regard.data.accounts import CARVED, GIVEN, Account, Report, hold_out, resolve, together
from regard.data.alignment import with_alignment
from regard.data.filters import clean
from regard.data.labelled import LabelledText, read_labelled
from regard.data.options import BadLines, CorpusOptions, DataOptions, FilterRules
from regard.data.pairs import Pair
from regard.data.readers import read_jsonl, read_parallel, read_tsv
from regard.errors import DataError


@dataclass(frozen=True)
class Corpus:
    pairs: list[Pair]
    weight: float
    name: str


@dataclass(frozen=True)
class Part:
    """So many validation pairs, one after another, of one task."""

    name: str
    count: int


@dataclass(frozen=True)
class Loaded:
    corpora: tuple[Corpus, ...]
    validation: list[Pair]
    report: Report
    parts: tuple[Part, ...] = ()  # of the validation pairs, where they are of several tasks


def load_corpora(options: DataOptions, seed: int = 0) -> Loaded:
    """Training corpora and validation pairs, disjoint in their sources when the latter are carved out."""
    if not options.corpora:
        raise DataError("data.corpora: found no corpus; give source and target, a tsv file or a jsonl file")
    loaded = [_load(corpus, options.filters, options.bad_lines) for corpus in options.corpora]
    corpora, accounts = tuple(c for c, _ in loaded), tuple(a for _, a in loaded)
    _refuse_empty(accounts)
    if options.valid:
        # A test of quality takes the pairs as they come: long, repeated and lopsided ones too.
        rules = FilterRules(max_ratio=None, drop_duplicates=False, max_characters=options.filters.max_characters)
        valid = [_load(corpus, rules, options.bad_lines) for corpus in options.valid]
        _refuse_empty([account for _, account in valid])
        pairs = [pair for corpus, _ in valid for pair in corpus.pairs]
        parts = tuple(
            Part(named.name, len(corpus.pairs)) for named, (corpus, _) in zip(options.valid, valid, strict=True)
        )
        report = Report(accounts, together([account for _, account in valid]), GIVEN)
        return Loaded(corpora, pairs, report, parts if len(parts) > 1 else ())
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


def _load(options: CorpusOptions, rules: FilterRules, bad_lines: BadLines) -> tuple[Corpus, Account]:
    unreadable: Counter[str] = Counter()
    if options.labelled:  # a label is as short as it likes
        rules = rules.model_copy(update={"max_ratio": None})
    pairs, dropped = clean(_read(options, bad_lines, unreadable), rules)
    if options.prefix:
        pairs = [Pair(options.prefix + pair.source, pair.target) for pair in pairs]
    every = Counter(dropped) + unreadable
    name = " + ".join(str(path) for path in options.files)
    account = Account(name, read=len(pairs) + every.total(), kept=len(pairs), dropped=dict(every))
    return Corpus(pairs, options.weight, name), account


def _read(options: CorpusOptions, bad_lines: BadLines, dropped: Counter[str]) -> Iterator[Pair]:
    pairs = _read_texts(options, bad_lines, dropped)
    return pairs if options.alignment is None else with_alignment(pairs, resolve(options.alignment))


def _read_texts(options: CorpusOptions, bad_lines: BadLines, dropped: Counter[str]) -> Iterator[Pair]:
    if options.labelled is not None:
        columns = options.labelled.text, options.labelled.second
        return (written(text, *columns) for text in read_labelled(options.labelled, bad_lines, dropped))
    files = [resolve(path) for path in options.files]
    if options.tsv is not None:
        return read_tsv(files[0], bad_lines, dropped)
    if options.jsonl is not None:
        return read_jsonl(files[0], options.source_key, options.target_key, bad_lines, dropped)
    return read_parallel(files[0], files[1], bad_lines, dropped)


def written(example: LabelledText, first: str, second: str | None) -> Pair:
    """A label as the answer to a text; two texts follow their names, as Raffel et al. 2020 write them (appendix D)."""
    if example.second is None:
        return Pair(example.text, example.label)
    return Pair(f"{first}: {example.text} {second}: {example.second}", example.label)


def _refuse_empty(accounts: Iterable[Account]) -> None:
    for account in accounts:
        if account.kept == 0:
            reason, count = Counter(account.dropped).most_common(1)[0]
            raise DataError(
                f'{account.name}: none of {account.read} pairs is left; most ({count}) fell to "{reason}"; '
                "check the files, or loosen data.filters"
            )
