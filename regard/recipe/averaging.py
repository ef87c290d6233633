"""One model directory from the mean of several, or of the checkpoints of one."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from regard.errors import ModelFormatError
from regard.files import check_manifest, write_folder, write_manifest
from regard.recipe.folder import CARD, DATA, FILM, LOG, REPORT, WEIGHTS, ModelFolder, read_model
from regard.training import checkpoint
from regard.training.averaging import average
from regard.training.tensors import write_tensors


def average_folders(models: Sequence[Path], out: Path, last: int | None) -> int:
    """Writes `out` and returns how many sets of weights went into it.

    Several models must have one recipe (`model` section) and one vocabulary: only then do their weights mean the same.
    """
    if out.exists():
        raise ModelFormatError(f"{out}: already exists; choose another --out")
    if len(models) > 1 and last is not None:
        raise ModelFormatError(f"--last {last}: counts the checkpoints of one model, found {len(models)}; leave it out")
    folders = [read_model(path) for path in models]
    for folder in folders[1:]:
        refuse_unlike(folders[0], folder)
    sources = list(models) if len(models) > 1 else checkpoints(models[0], last)
    mean = average([path / WEIGHTS for path in sources])
    first = models[0]

    def fill(fresh: Path) -> None:
        for name in check_manifest(first)["files"].keys() - {WEIGHTS, CARD, LOG, DATA, FILM, REPORT}:
            shutil.copyfile(first / name, fresh / name)
        write_tensors(fresh / WEIGHTS, mean)
        (fresh / CARD).write_text(card(out.name, [path.name for path in sources]), "utf-8")
        write_manifest(fresh, {})

    write_folder(out, fill)
    return len(sources)


def card(name: str, sources: Sequence[str]) -> str:
    listed = "\n".join(f"- {source}" for source in sources)
    return f"# {name}\n\nThe mean of {len(sources)} sets of weights:\n\n{listed}\n"


def checkpoints(model: Path, last: int | None) -> list[Path]:
    """The last checkpoints that the recipe asked for, checked; one that an interrupt left is not among them."""
    found = checkpoint.scheduled(model / "checkpoints")
    if len(found) < (last or 1):
        raise ModelFormatError(
            f"{model}: found {len(found)} checkpoints, expected at least {last or 1}; train with a higher training.keep"
        )
    chosen = found[-last:] if last else found
    for path in chosen:
        check_manifest(path)
    return chosen


def refuse_unlike(one: ModelFolder, other: ModelFolder) -> None:
    if one.recipe.model != other.recipe.model:
        raise ModelFormatError(f"{other.path}: its model section differs from {one.path}'s; only like models average")
    for name in sorted(p.name for p in one.path.iterdir() if p.stem in ("shared", "source", "target")):
        theirs = other.path / name
        if not theirs.exists() or theirs.read_bytes() != (one.path / name).read_bytes():
            raise ModelFormatError(f"{theirs}: not the vocabulary of {one.path}; only models of one vocabulary average")
