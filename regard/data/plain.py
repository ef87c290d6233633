"""Plain text to documents for a language model: those to learn from and those held out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from regard.data.accounts import CARVED, GIVEN, Account, Report, hold_out, resolve, together
from regard.data.options import BadLines, TextCorpusOptions
from regard.data.readers import read_lines
from regard.errors import DataError

LIMIT = 100_000_000  # characters of one line: a whole book can be one


@dataclass(frozen=True)
class LoadedTexts:
    """Documents in the order of the files. The report counts lines: one that the split cuts in two is held out."""

    training: list[str]
    validation: list[str]
    report: Report


def load_texts(
    corpora: Sequence[TextCorpusOptions], valid_size: int | None, bad_lines: BadLines, seed: int
) -> LoadedTexts:
    """What to learn from, and what not: the validation files of all corpora, or a part of each where none has any."""
    if not corpora:
        raise DataError("data.texts: found no corpus; give files of plain text")
    texts, accounts = _read_all([(corpus, corpus.files) for corpus in corpora], bad_lines)
    given = [(corpus, corpus.valid) for corpus in corpora if corpus.valid]
    if given:
        held, left = _read_all(given, bad_lines)
        report = Report(accounts, together(left), GIVEN)
        return LoadedTexts(list(chain(*texts)), list(chain(*held)), report)
    pool = [text for text, corpus in zip(texts, corpora, strict=True) if corpus.valid_share is None]
    taken = hold_out(dict.fromkeys(chain(*pool)), valid_size, seed, "documents") if pool else ()
    parts = [
        split_picked(text, taken) if corpus.valid_share is None else split_end(text, corpus.valid_share)
        for text, corpus in zip(texts, corpora, strict=True)
    ]
    lines = [sum(map(count_lines, end)) for _, end in parts]
    accounts = tuple(account.without("held out", count) for account, count in zip(accounts, lines, strict=True))
    valid = Account("validation", sum(lines), sum(lines), {}, "lines")
    begin, end = (list(chain(*(part[side] for part in parts))) for side in (0, 1))
    return LoadedTexts(begin, end, Report(accounts, valid, CARVED))


def split_documents(lines: Iterable[str], kind: str) -> Iterator[str]:
    """All lines as one document, one of each line, or one of each run of lines without a blank one.

    A whole file keeps each line end; otherwise the last line of a document has none. Blank documents are left out.
    """
    match kind:
        case "file":
            found = iter(["".join(line + "\n" for line in lines)])
        case "line":
            found = iter(lines)
        case _:
            runs = groupby(lines, key=lambda line: bool(line.strip()))
            found = ("\n".join(run) for visible, run in runs if visible)
    return (document for document in found if document.strip())


def split_end(documents: Sequence[str], share: float) -> tuple[list[str], list[str]]:
    """The first ⌊(1 − share) · characters⌋ characters, and the rest; the document at that place is cut in two."""
    total = sum(map(len, documents))
    left = int(total * (1 - share))
    if not 0 < left < total:
        raise DataError(f"data.texts.valid_share: {share} of {total} characters leaves one side empty; give more text")
    begin, end = [], []
    for document in documents:
        begin.append(document[:left])
        end.append(document[left:])
        left = max(0, left - len(document))
    return [part for part in begin if part], [part for part in end if part]


def split_picked(documents: Sequence[str], picked: Iterable[str]) -> tuple[list[str], list[str]]:
    """The documents that are not picked, and those that are, in their order: equal ones are on the same side."""
    taken = set(picked)
    return [document for document in documents if document not in taken], [d for d in documents if d in taken]


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _read_all(
    corpora: Sequence[tuple[TextCorpusOptions, tuple[Path, ...]]], bad_lines: BadLines
) -> tuple[list[list[str]], tuple[Account, ...]]:
    """Documents and account of each corpus."""
    read = [_read(files, corpus.documents, bad_lines) for corpus, files in corpora]
    return [documents for documents, _ in read], tuple(account for _, account in read)


def _read(files: Sequence[Path], kind: str, bad_lines: BadLines) -> tuple[list[str], Account]:
    dropped, read, documents = Counter[str](), Counter[str](), list[str]()
    for path in files:
        lines = read_lines(resolve(path), bad_lines, dropped, LIMIT)
        documents += split_documents(_counted(lines, read), kind)
    name, kept = " + ".join(map(str, files)), sum(map(count_lines, documents))
    if not documents:
        raise DataError(f"{name}: found no text in {read.total() + dropped.total()} lines; check the files")
    dropped["blank"] = read.total() - kept
    return documents, Account(name, kept + dropped.total(), kept, dict(+dropped), "lines")


def _counted(lines: Iterable[str], count: Counter[str]) -> Iterator[str]:
    for line in lines:
        count["lines"] += 1
        yield line
