"""A study from its first row to its page: rows that are finished are kept, the others are trained."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RecipeError
from regard.studies import bottleneck, gradients, levers, table2, table3
from regard.studies.lanes import side_by_side
from regard.studies.report import Report, TestSet, read_test, write_report
from regard.studies.rows import ROWS, Plan, Result, Row, Tell, agree, finish_row

Rows = Callable[[Plan], Sequence[Row]]
Reporter = Callable[[Sequence[Result], TestSet, Plan, Path], Report]


@dataclass(frozen=True)
class Study:
    """Rows to train, and what is told of them together. `rows` refuses a text that nothing could be told of."""

    rows: Rows
    report: Reporter


def always(rows: Sequence[Row]) -> Rows:
    return lambda _plan: rows


STUDIES = {
    "table2": Study(always(table2.ROWS), table2.report),
    "table3": Study(always(table3.ROWS), table3.report),
    "bottleneck": Study(always(bottleneck.ROWS), bottleneck.report),
    "levers": Study(levers.rows, levers.report),
    "gradients": Study(gradients.rows, gradients.report),
}


@dataclass(frozen=True)
class Asked:
    """Which study, of which rows (none named: all), and where it is kept. `command` is what makes it again."""

    name: str
    out: Path
    plan: Plan
    rows: tuple[str, ...]
    command: str
    quiet: bool
    at_once: int = 1  # rows
    notes: tuple[str, ...] = ()  # that stand with the figures


def conduct(asked: Asked, tell: Tell) -> Report | None:
    """What came out, written to DIR/study-NAME.*; none when a signal stopped it: the same call goes on."""
    study = STUDIES[asked.name]
    test = read_test(asked.plan.texts)
    rows = chosen(study.rows(asked.plan), asked.rows)
    agree(asked.out, asked.plan.to_json())
    if asked.at_once > 1:
        results = side_by_side(rows, asked.plan, asked.out, asked.at_once, tell)
    else:
        results = one_by_one(rows, asked, tell)
    if results is None:
        return None
    tell("comparing the rows ...")
    report = study.report(results, test, asked.plan, asked.out / ROWS).with_notes(asked.notes)
    write_report(asked.out, asked.name, report, results, asked.command)
    return report


def one_by_one(rows: Sequence[Row], asked: Asked, tell: Tell) -> list[Result] | None:
    """All rows finished; none when a signal interrupted one."""
    results = []
    for number, row in enumerate(rows, start=1):
        tell(f"row {number} of {len(rows)}: {row.name}, {asked.plan.length}")
        result = finish_row(row, asked.plan, asked.out, quiet=asked.quiet)
        if result is None:
            return None
        tell(result.sentence)
        results.append(result)
    return results


def chosen(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """The rows of these names, in the study's order; all where none is named."""
    known = [row.name for row in rows]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known rows: {', '.join(known)}"
            raise RecipeError(f"--rows {name}: not a row of this study; {hint}")
    return [row for row in rows if not names or row.name in names]
