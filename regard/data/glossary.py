"""A glossary file: how given terms are to be translated."""

from pathlib import Path

from regard.data.readers import read_tsv
from regard.errors import DataError


def read_glossary(path: Path) -> dict[str, str]:
    """Source term → target term: one pair a line with a tab between them, no header, plain or .gz or .xz."""
    entries: dict[str, str] = {}
    for number, pair in enumerate(read_tsv(path), start=1):
        source, target = pair.source.strip(), pair.target.strip()
        if not source or not target:
            raise DataError(f"{path}, line {number}: found a term on one side only, expected one on both; complete it")
        if entries.get(source, target) != target:
            raise DataError(
                f"{path}, line {number}: {source!r} is {target!r} here and {entries[source]!r} before; keep one of them"
            )
        entries[source] = target
    return entries
