"""Texts with a label each: what a classifier learns from."""

import csv
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from regard.data.accounts import CARVED, GIVEN, Account, Report, hold_out, resolve, together
from regard.data.labels import Labels
from regard.data.options import BadLines, LabelledOptions
from regard.data.readers import Fault, as_text, parse_object, read_lines, read_records
from regard.errors import DataError

TREC = ("label", "fine", "text")  # the columns of a line "DESC:manner How did …", where fine is "DESC:manner"
SETTINGS = "text, second and label"  # where a recipe says which columns or keys are read


@dataclass(frozen=True, slots=True)
class LabelledText:
    """`second` is the other text of a pair, such as the hypothesis of a premise."""

    text: str
    second: str | None
    label: str


@dataclass(frozen=True)
class LabelledCorpus:
    examples: list[LabelledText]
    weight: float
    name: str


@dataclass(frozen=True)
class LoadedLabelled:
    corpora: tuple[LabelledCorpus, ...]
    validation: list[LabelledText]
    labels: Labels
    report: Report


def load_labelled(
    corpora: Sequence[LabelledOptions], valid_size: int | None, bad_lines: BadLines, seed: int
) -> LoadedLabelled:
    """What to learn from, and what not: the validation files of all corpora, or texts held out where none has any.

    A text that is held out takes all its examples along: a premise with each of its hypotheses.
    """
    if not corpora:
        raise DataError("data.labelled: found no corpus; give a file of texts with a label each")
    loaded, accounts = _read_all(corpora, bad_lines)
    examples = [example for corpus in loaded for example in corpus.examples]
    _refuse_mixture(examples)
    labels = Labels.of((example.label for example in examples), " + ".join(corpus.name for corpus in loaded))
    given = [part for part in map(_validation, corpora) if part is not None]
    if given:
        valid, left = _read_all(given, bad_lines)
        validation = [example for corpus in valid for example in corpus.examples]
        report = Report(accounts, together(left), GIVEN)
        labels.ids([example.label for example in validation], report.validation.name)  # refuses what is not known
    else:
        loaded, validation = _hold_out(loaded, valid_size, seed)
        rest = [len(corpus.examples) for corpus in loaded]
        accounts = tuple(a.without("held out", a.kept - count) for a, count in zip(accounts, rest, strict=True))
        report = Report(accounts, Account("validation", len(validation), len(validation), {}, "texts"), CARVED)
    return LoadedLabelled(tuple(loaded), validation, labels, report)


def _hold_out(
    corpora: Sequence[LabelledCorpus], size: int | None, seed: int
) -> tuple[list[LabelledCorpus], list[LabelledText]]:
    examples = [example for corpus in corpora for example in corpus.examples]
    taken = set(hold_out(dict.fromkeys(example.text for example in examples), size, seed, "texts"))
    rest = [replace(c, examples=[example for example in c.examples if example.text not in taken]) for c in corpora]
    return rest, [example for example in examples if example.text in taken]


def read_labelled(options: LabelledOptions, bad_lines: BadLines, dropped: Counter[str]) -> Iterator[LabelledText]:
    """The examples of the training files in order, blank texts too; `valid` is not read."""
    if options.file is None:
        for label, path in options.files.items():
            for line in read_lines(resolve(path), bad_lines, dropped):
                yield LabelledText(line, None, label)
        return
    read = {"tsv": _read_tsv, "csv": _read_csv, "jsonl": _read_jsonl, "trec": _read_trec}[options.form]
    yield from read(resolve(options.file), options, bad_lines, dropped)


def _read_tsv(
    path: Path, options: LabelledOptions, bad_lines: BadLines, dropped: Counter[str]
) -> Iterator[LabelledText]:
    """Tabs between columns, no quoting."""
    columns = options.columns or tuple(next(read_lines(path)).split("\t"))
    _check_columns(columns, options, f"{path}, line 1")

    def parse(line: str, place: str) -> LabelledText:
        return _example(line.split("\t"), columns, options, place)

    return islice(read_records(path, parse, bad_lines, dropped), 0 if options.columns else 1, None)


def _read_csv(
    path: Path, options: LabelledOptions, bad_lines: BadLines, dropped: Counter[str]
) -> Iterator[LabelledText]:
    """Commas between columns; a column in double quotes may hold commas, line ends and doubled quotes. RFC 4180."""
    places = deque([f"{path}, line 1"], maxlen=1)

    def lines() -> Iterator[str]:
        for line, place in read_records(path, lambda line, place: (line, place), bad_lines, dropped):
            places.append(place)
            yield line + "\n"

    try:
        rows = (row for row in csv.reader(lines(), strict=True) if row)
        columns = options.columns or tuple(next(rows, ()))
        _check_columns(columns, options, places[0])
        for row in rows:
            yield _example(row, columns, options, places[0])
    except csv.Error as error:
        raise DataError(f"{places[0]}: not CSV ({error}); put a text with commas or quotes in double quotes") from None


def _read_trec(
    path: Path, options: LabelledOptions, bad_lines: BadLines, dropped: Counter[str]
) -> Iterator[LabelledText]:
    """ "DESC:manner How did serfdom develop ?": the classes of a question, then the question. Li & Roth 2002."""
    _check_columns(TREC, options, str(path))

    def parse(line: str, place: str) -> LabelledText:
        fine, _, text = line.partition(" ")
        coarse, colon, _ = fine.partition(":")
        if not colon:
            raise DataError(f"{place}: found {line[:40]!r}, expected LABEL:fine, a blank and the text")
        return _example((coarse, fine, text), TREC, options, place)

    return read_records(path, parse, bad_lines, dropped)


def _read_jsonl(
    path: Path, options: LabelledOptions, bad_lines: BadLines, dropped: Counter[str]
) -> Iterator[LabelledText]:
    """One object on each line; a label may be a whole number."""
    keys = tuple(key for key in (options.text, options.second, options.label) if key is not None)

    def parse(line: str, place: str) -> LabelledText | Fault:
        record = parse_object(line, place, keys, SETTINGS)
        row = []
        for key in keys:
            value = record[key]
            if key == options.label and type(value) is int:
                value = str(value)
            text = as_text(value, f"{place}: {key!r}")
            if isinstance(text, Fault):
                return text
            row.append(text)
        return _example(row, keys, options, place)

    return read_records(path, parse, bad_lines, dropped)


def _check_columns(columns: Sequence[str], options: LabelledOptions, place: str) -> None:
    for name in (options.text, options.second, options.label):
        if name is not None and columns.count(name) != 1:
            found = ", ".join(map(repr, columns[:8])) or "nothing"
            number = "no column" if name not in columns else "more than one column"
            raise DataError(
                f"{place}: {number} {name!r}, found {found}; set {SETTINGS}, or columns if it has no header"
            )


def _example(row: Sequence[str], columns: Sequence[str], options: LabelledOptions, place: str) -> LabelledText:
    if len(row) != len(columns):
        raise DataError(f"{place}: found {len(row)} columns, expected {len(columns)}: {', '.join(columns)}")
    named = dict(zip(columns, row, strict=True))
    label = named[options.label].strip()
    if not label:
        raise DataError(f"{place}: the label is empty; give every text one")
    return LabelledText(named[options.text], None if options.second is None else named[options.second], label)


def _read_all(
    corpora: Sequence[LabelledOptions], bad_lines: BadLines
) -> tuple[list[LabelledCorpus], tuple[Account, ...]]:
    read = [_read(options, bad_lines) for options in corpora]
    return [corpus for corpus, _ in read], tuple(account for _, account in read)


def _read(options: LabelledOptions, bad_lines: BadLines) -> tuple[LabelledCorpus, Account]:
    """The examples that are not blank; an example in two corpora, or twice in one, is there twice."""
    files = [options.file] if options.file is not None else options.files.values()
    name, dropped, kept = " + ".join(map(str, files)), Counter[str](), list[LabelledText]()
    for example in read_labelled(options, bad_lines, dropped):
        if example.text.strip() and (example.second is None or example.second.strip()):
            kept.append(example)
        else:
            dropped["empty"] += 1
    if not kept:
        raise DataError(f"{name}: found no text among {dropped.total()} examples; check the file and its columns")
    account = Account(name, len(kept) + dropped.total(), len(kept), dict(dropped), "texts")
    return LabelledCorpus(kept, options.weight, name), account


def _validation(options: LabelledOptions) -> LabelledOptions | None:
    """The options with the validation files in the place of the training files."""
    if options.valid is None and not options.valid_files:
        return None
    return options.model_copy(update={"file": options.valid, "files": options.valid_files})


def _refuse_mixture(examples: Sequence[LabelledText]) -> None:
    pairs = sum(example.second is not None for example in examples)
    if 0 < pairs < len(examples):
        raise DataError(
            f"data.labelled: {pairs} of {len(examples)} examples are pairs of texts, the others are not; "
            "set second for all corpora or for none"
        )
