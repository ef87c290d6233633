"""Where figures go: results/NAME.json for programs, results/NAME.md, made from it, for people."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regard.files import write_atomically
from regard.studies.provenance import commit, machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


@dataclass(frozen=True)
class Result:
    """One measurement. A figure is named "row: column", which is where the page shows it, or simply by a name."""

    command: str
    minutes: float
    figures: Mapping[str, float]
    notes: str


def content_of(result: Result) -> dict[str, Any]:
    """What a result file holds: the measurement, with commit, date and machine of now."""
    content = {
        **asdict(result),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "minutes": round(result.minutes, 2),
        "figures": {key: round(value, 4) for key, value in result.figures.items()},
    }
    return {key: content[key] for key in ("command", "commit", "date", "machine", "minutes", "figures", "notes")}


def write(name: str, result: Result, folder: Path = RESULTS) -> dict[str, Any]:
    """Writes NAME.json and NAME.md and returns what is in the former."""
    ordered = content_of(result)
    write_atomically(folder / f"{name}.json", json.dumps(ordered, indent=2, ensure_ascii=False) + "\n")
    write_atomically(folder / f"{name}.md", page(name, ordered))
    return ordered


def page(name: str, content: Mapping[str, Any]) -> str:
    """The figures as tables, and what else one must know to believe them."""
    plain = {key: value for key, value in content["figures"].items() if ": " not in key}
    table: dict[str, dict[str, float]] = {}
    for key, value in content["figures"].items():
        row, _, column = key.rpartition(": ")
        if row:
            table.setdefault(row, {})[column] = value
    lines = grid(["figure", "value"], [[key, shown(value)] for key, value in plain.items()]) if plain else []
    for columns in dict.fromkeys(tuple(cells) for cells in table.values()):
        rows = [[row, *map(shown, cells.values())] for row, cells in table.items() if tuple(cells) == columns]
        lines += ["", *grid(["", *columns], rows)]
    facts = [f"- {key}: {content[key]}" for key in ("command", "commit", "date", "machine", "minutes")]
    return "\n".join([f"# {name}", "", *lines, "", content["notes"], "", *facts, ""]).replace("\n\n\n", "\n\n")


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose cells stand to the right, but for the first."""
    return [
        f"| {' | '.join(head)} |".replace("|  |", "| |"),
        "|---|" + "--:|" * (len(head) - 1),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
