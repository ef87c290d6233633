"""Checkpoints: `checkpoints/step-00001234/`, each a whole folder with checksums, or not there. No pickle."""

import dataclasses
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.errors import ModelFormatError, TrainingError
from regard.files import check_manifest, settle, write_folder, write_manifest
from regard.training.tensors import finite, read_tensors, write_tensors

STATE = "state.json"
NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class Place:
    """Where a run stands, beside its tensors.

    `position` counts batches taken from `epoch`; `elapsed` counts seconds of the run, pauses left out; `reserve` is
    what the last validation took. `worse` and `skipped` count validations and steps in a row. `scores` are those of
    the last validation, which was at step `validated`. A checkpoint that only an interrupt asked for is not
    `scheduled`: averages leave it out, so an interrupted run ends with the weights of an uninterrupted one.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    elapsed: float = 0.0
    reserve: float = 0.0
    best: float | None = None
    worse: int = 0
    skipped: int = 0
    validated: int = 0
    scores: dict[str, float] = dataclasses.field(default_factory=dict)
    scheduled: bool = True


def save(target: Path, tensors: Mapping[str, Mapping[str, Tensor]], place: Place) -> None:
    """`target` holds one safetensors file per entry of `tensors`, `state.json` and `manifest.json`.

    Weights that are not finite are never written.
    """
    for part, content in tensors.items():
        if not finite(content):
            raise TrainingError(
                f"step {place.step}: the {part} tensors are not finite, so nothing was saved; go on from the last "
                "checkpoint with a lower training.learning_rate or a longer training.warmup"
            )

    def fill(folder: Path) -> None:
        for part, content in tensors.items():
            write_tensors(folder / f"{part}.safetensors", content)
        (folder / STATE).write_text(json.dumps(dataclasses.asdict(place), indent=2) + "\n")
        write_manifest(folder, {"kind": "checkpoint"})

    write_folder(target, fill)


def read(source: Path) -> tuple[dict[str, dict[str, Tensor]], Place]:
    """What `save` wrote, every file checked."""
    check_manifest(source)
    return {path.stem: read_tensors(path) for path in sorted(source.glob("*.safetensors"))}, read_place(source)


def read_place(source: Path) -> Place:
    path = source / STATE
    try:
        return Place(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise ModelFormatError(f"{path}: not the state of a run ({error}); remove this checkpoint") from error


def path_of(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def steps(folder: Path) -> list[Path]:
    """The checkpoints in `folder`, oldest first."""
    found = [path for path in folder.glob("step-*") if NAME.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def latest(folder: Path) -> Path | None:
    """The newest checkpoint that is whole; damaged ones are passed over, what a killed save left is removed.

    When there are checkpoints but none is whole, that is an error: starting anew would overwrite the evidence.
    """
    for stale in [*folder.glob(".*.tmp"), *folder.glob(".*.old")]:
        settle(folder / stale.name[1:-4])
    refusal: ModelFormatError | None = None
    for path in reversed(steps(folder)):
        try:
            check_manifest(path)
            read_place(path)
        except ModelFormatError as error:
            refusal = refusal or error
        else:
            return path
    if refusal:
        raise refusal
    return None


def prune(folder: Path, current: Path, keep: int) -> None:
    """Removes all but `current` and the `keep` newest scheduled ones up to it.

    A newer one than `current` is damaged, or the run would have gone on from there.
    """
    found = steps(folder)
    past = found[: found.index(current) + 1]
    wanted = {current, *[path for path in past if path in scheduled(folder)][-keep:]}
    for path in found:
        if path not in wanted:
            shutil.rmtree(path)


def scheduled(folder: Path) -> list[Path]:
    """The checkpoints that the options asked for, oldest first; a damaged one is left out."""
    chosen = []
    for path in steps(folder):
        try:
            if read_place(path).scheduled:
                chosen.append(path)
        except ModelFormatError:
            continue
    return chosen
