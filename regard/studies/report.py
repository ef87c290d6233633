"""What a study writes when its rows are finished: DIR/study-NAME.json, .md and .html, from the same figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regard.data.accounts import resolve
from regard.data.readers import read_parallel
from regard.explaining.chart import Point, Series
from regard.explaining.study_page import Contents, Figure, Table, study_markdown, study_page
from regard.files import write_atomically
from regard.recipe.folder import LOG
from regard.studies.rows import Plan, Result, Texts
from regard.training.events import Validated
from regard.training.logs import read_log

HEADS = (
    "",
    "dev PPL",
    "dev BLEU",
    "test BLEU",
    "parameters",
    "optimiser",
    "training FLOPs",
    "steps",
    "epochs",
    "minutes",
)


@dataclass(frozen=True)
class TestSet:
    """What every row was tested on."""

    __test__ = False  # pytest takes the name for a test

    sources: list[str]
    references: list[str]


def read_test(texts: Texts) -> TestSet:
    pairs = list(read_parallel(resolve(texts.test_source), resolve(texts.test_target)))
    return TestSet([pair.source for pair in pairs], [pair.target for pair in pairs])


@dataclass(frozen=True)
class Report:
    """`figures` are for programs, named "row: column" or simply by a name; `contents` for people.

    `unsaid` is known of every row and told of none.
    """

    figures: dict[str, float]
    contents: Contents
    unsaid: tuple[str, ...] = ("outputs",)

    def with_notes(self, notes: tuple[str, ...]) -> "Report":
        return replace(self, contents=replace(self.contents, notes=(*self.contents.notes, *notes)))


def overview(results: Sequence[Result]) -> Table:
    """What every study tells of its rows."""
    return Table("The rows", HEADS, tuple(overview_row(result) for result in results))


def overview_row(r: Result) -> tuple[str, ...]:
    scores = (f"{r.dev_perplexity:.2f}", f"{r.dev_bleu:.2f}", f"{r.test_bleu:.2f}")
    return (
        r.name,
        *scores,
        f"{r.parameters / 1e6:.2f} M",
        r.optimiser,
        f"{r.flops:.1e}",
        f"{r.steps:,}",
        f"{r.epochs:.1f}",
        f"{r.train_minutes:.1f}",
    )


def row_figures(results: Sequence[Result]) -> dict[str, float]:
    return {f"{result.name}: {name}": value for result in results for name, value in result.figures().items()}


def learning_curves(results: Sequence[Result], rows: Path) -> Figure:
    """Dev perplexity along each run, from the training logs beneath `rows`."""
    series = []
    for result in results:
        seen = [event for event in read_log(rows / result.name / LOG) if isinstance(event, Validated)]
        points = [(event.seconds / 60, event.scores["perplexity"]) for event in seen]
        notes = [Point(x, y, f"{result.name} · {x:.1f} min · PPL {y:.2f}") for x, y in points]
        series.append(Series(result.name, tuple(notes)))
    final = [result.dev_perplexity for result in results]
    most = max(4 * min(final), 1.2 * max(final))  # the first validations would flatten all others
    cut = (Series(line.name, tuple(p for p in line.points if p.y <= most)) for line in series)
    return Figure("dev perplexity", tuple(cut), "minutes of training")


def equal(plan: Plan) -> str:
    """What all rows have in common, in a sentence."""
    settings = f" and {', '.join(plan.settings)}" if plan.settings else ""
    same = f"on the same text, with seed {plan.seed}{settings}, by one training loop"
    added = "The minutes of the whole are those of all rows added up, also where several learned at once."
    return f"Every row was trained for {plan.length} {same}. {added}"


def how(plan: Plan, results: Sequence[Result]) -> tuple[str, ...]:
    """What one must know to believe the figures of trained rows."""
    result = results[0]
    return (
        f"{equal(plan)} Dev and test were translated with beam {result.beam}. What is chosen here is chosen by the dev "
        "set; the test set was scored once for each row, at its end.",
        "Training FLOPs are counted by formula: forward matrix products × 3, over the lengths of the training pairs "
        "without padding, times the epochs. PPL is per token of the vocabulary, which all rows share. "
        f"BLEU: {result.signature}",
    )


def write_report(out: Path, name: str, report: Report, results: Sequence[Result], command: str) -> None:
    """The three files, each whole or not there."""
    facts: dict[str, Any] = {
        "command": command,
        "commit": " and ".join(dict.fromkeys(result.commit for result in results)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": " and ".join(dict.fromkeys(result.machine for result in results)),
        "minutes": round(sum(result.minutes for result in results), 2),
    }
    figures = {key: rounded(value) for key, value in report.figures.items()}
    notes = " ".join((*report.contents.findings, *report.contents.notes))
    rows = [{key: value for key, value in asdict(result).items() if key not in report.unsaid} for result in results]
    content = {**facts, "figures": figures, "notes": notes, "rows": rows}
    shown = {key: str(value) for key, value in facts.items()}
    write_atomically(out / f"study-{name}.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    write_atomically(out / f"study-{name}.md", study_markdown(report.contents, shown))
    write_atomically(out / f"study-{name}.html", study_page(report.contents, shown))


def rounded(value: float) -> float:
    """Four decimals; what is very large or very small keeps four digits."""
    return float(f"{value:.4g}") if value and not 1e-3 <= abs(value) < 1e9 else round(value, 4)


def by_name(results: Sequence[Result]) -> Mapping[str, Result]:
    return {result.name: result for result in results}
