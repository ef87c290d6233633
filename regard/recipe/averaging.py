"""One model directory from the mean of several, or of the checkpoints of one."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from regard.errors import ModelFormatError
from regard.files import check_manifest, write_folder, write_manifest
from regard.recipe.folder import CARD, DATA, LOG, WEIGHTS, ModelFolder, read_model
from regard.training import checkpoint
from regard.training.averaging import average
from regard.training.tensors import write_tensors


def average_folders(models: Sequence[Path], out: Path, last: int | None) -> int:
    """Writes `out` and returns how many sets of weights went into it.

    Several models must have one recipe (`model` section) and one vocabulary: only then do their weights mean the same.
    """
    folders = [read_model(path) for path in models]
    for folder in folders[1:]:
        refuse_unlike(folders[0], folder)
    paths = [path / WEIGHTS for path in models] if len(models) > 1 else checkpoints(models[0], last)
    mean = average(paths)
    first = models[0]

    def fill(fresh: Path) -> None:
        listed = check_manifest(first)["files"]
        for name in listed.keys() - {WEIGHTS, CARD, LOG, DATA}:
            shutil.copyfile(first / name, fresh / name)
        write_tensors(fresh / WEIGHTS, mean)
        sources = "\n".join(f"- {path.parent.name if len(models) > 1 else path.parent}" for path in paths)
        (fresh / CARD).write_text(f"# {out.name}\n\nThe mean of {len(paths)} sets of weights:\n\n{sources}\n", "utf-8")
        write_manifest(fresh, {})

    write_folder(out, fill)
    return len(paths)


def checkpoints(model: Path, last: int | None) -> list[Path]:
    found = [path / WEIGHTS for path in checkpoint.steps(model / "checkpoints")]
    if len(found) < (last or 1):
        raise ModelFormatError(
            f"{model}: found {len(found)} checkpoints, expected at least {last or 1}; see training.keep"
        )
    return found[-last:] if last else found


def refuse_unlike(one: ModelFolder, other: ModelFolder) -> None:
    if one.recipe.model != other.recipe.model:
        raise ModelFormatError(f"{other.path}: its model section differs from {one.path}'s; only like models average")
    for name in sorted(p.name for p in one.path.iterdir() if p.stem in ("shared", "source", "target")):
        theirs = other.path / name
        if not theirs.exists() or theirs.read_bytes() != (one.path / name).read_bytes():
            raise ModelFormatError(f"{theirs}: not the vocabulary of {one.path}; only models of one vocabulary average")
