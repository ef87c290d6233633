"""What happens in a run, as typed values; the console, the log and TensorBoard read them and nothing else."""

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any, Literal

from regard.errors import DataError
from regard.evaluation.samples import Sample

Source = Literal["ema", "average", "best", "last"]


@dataclass(frozen=True)
class Started:
    """The run begins, or goes on after step `resumed_from`. One of `steps`, `epochs` and `budget` is its length."""

    parameters: int
    steps: int | None
    epochs: float | None
    budget: float | None
    resumed_from: int | None


@dataclass(frozen=True)
class MemoryChecked:
    """The largest batch went forward and backward; `peak` is the highest memory of the process so far, in bytes."""

    peak: int


@dataclass(frozen=True)
class Stepped:
    """One optimiser step. `loss` is the mean per unit; `seconds` are those of the whole run, earlier parts included."""

    step: int
    epoch: int
    loss: float
    learning_rate: float
    gradient_norm: float
    units: int
    units_per_second: float
    progress: float
    seconds: float
    seconds_left: float | None


@dataclass(frozen=True)
class Skipped:
    """A loss or gradient that is not finite: the weights stayed as they were. `in_a_row` counts such steps."""

    step: int
    loss: float
    gradient_norm: float
    in_a_row: int


@dataclass(frozen=True)
class Validated:
    """`samples`: what these weights make of a few sentences, always the same ones; none where no text is written."""

    step: int
    seconds: float
    scores: dict[str, float]
    best: bool
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class Saved:
    step: int
    path: str


@dataclass(frozen=True)
class Stopped:
    """No further step will be taken. After "interrupted" nothing follows, otherwise `Finished` does."""

    step: int
    reason: Literal["interrupted", "early", "done"]


@dataclass(frozen=True)
class Finished:
    """The model holds its final weights; `weights` says which, `scores` are theirs, `best` is the best of the run."""

    steps: int
    epochs: float
    seconds: float
    best: float | None
    scores: dict[str, float]
    weights: Source


Event = Started | MemoryChecked | Stepped | Skipped | Validated | Saved | Stopped | Finished
KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (Started, MemoryChecked, Stepped, Skipped, Validated, Saved, Stopped, Finished)
}


def to_json(event: Event) -> str:
    """One line of strict JSON with the kind under "event"; what is not finite becomes the text "nan" or "inf"."""
    return json.dumps({"event": type(event).__name__, **_plain(dataclasses.asdict(event))}, allow_nan=False)


def from_json(line: str) -> Event:
    """The event that `to_json` wrote."""
    try:
        content = json.loads(line)
        kind = KINDS[content.pop("event")]
        event: Event = kind(**{key: _restored(key, value) for key, value in content.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"not an event of a training log: {line[:60]!r}; expected a line that Regard wrote") from error
    return event


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _restored(key: str, value: Any) -> Any:
    if key == "samples":
        return tuple(Sample(**one) for one in value)
    if isinstance(value, dict):
        return {inner: _restored(inner, number) for inner, number in value.items()}
    return float(value) if isinstance(value, str) and key not in ("path", "reason", "weights") else value
