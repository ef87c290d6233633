"""The report of a finished run as a page: how it learned, and what the model looked at meanwhile."""

from collections.abc import Sequence
from pathlib import Path

from regard.explaining.film import read_film
from regard.explaining.page import Contents, CurvePoint, report
from regard.explaining.samples import Moment
from regard.files import write_atomically
from regard.jobs.interface import Prepared, Verdict
from regard.models.interface import parameters
from regard.recipe.folder import FILM, LOG, REPORT
from regard.training.events import Event, Finished, Stepped, Validated
from regard.training.logs import read_log


def write_report(folder: Path, prepared: Prepared, verdict: Verdict, finished: Finished) -> None:
    events = read_log(folder / LOG)
    contents = Contents(
        title=folder.name,
        summary=f"{verdict.summary} on validation data.",
        facts={
            "model": prepared.recipe.model.kind,
            "parameters": f"{parameters(prepared.model):,}",
            "steps": f"{finished.steps:,}",
            "epochs": f"{finished.epochs:.1f}",
            "minutes": f"{finished.seconds / 60:.1f}",
            "final weights": finished.weights,
        },
        curve=learning_curve(events),
        samples=[Moment(one.step, one.samples) for one in events if isinstance(one, Validated)],
        film=read_film(folder / FILM),
        commands={"use it": "\n".join(verdict.usage)},
    )
    write_atomically(folder / REPORT, report(contents))


def learning_curve(events: Sequence[Event]) -> list[CurvePoint]:
    """Every validation, and about two hundred of the steps between."""
    steps = [event for event in events if isinstance(event, Stepped)]
    points = [CurvePoint(e.step, e.seconds / 60, e.loss) for e in steps[:: max(1, len(steps) // 200)]]
    points += [CurvePoint(e.step, e.seconds / 60, None, e.scores) for e in events if isinstance(e, Validated)]
    return sorted(points, key=lambda point: point.step)
