"""What the options of a command say about labelled texts, as a part of a recipe."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl"}  # by the end of a name
PACKED = (".gz", ".xz")


@dataclass(frozen=True)
class Columns:
    """Where a file has its texts and labels; none: as the recipe has it, or else `text` and `label`."""

    text: str | None = None
    second: str | None = None
    label: str | None = None

    def given(self) -> dict[str, str]:
        named = {"text": self.text, "second": self.second, "label": self.label}
        return {name: column for name, column in named.items() if column is not None}


def form_of(file: Path) -> str | None:
    """What the end of a name says; none where it says nothing."""
    inside = file.with_suffix("") if file.suffix in PACKED else file
    return FORMS.get(inside.suffix)


def labelled(file: Path, valid: Path | None, columns: Columns) -> dict[str, Any]:
    """An entry of data.labelled."""
    return {
        "file": str(file),
        **({} if valid is None else {"valid": str(valid)}),
        "form": form_of(file) or "tsv",
        **columns.given(),
    }
