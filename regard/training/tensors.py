"""Named tensors of a model: on disk and back, compared name by name, copied all or nothing."""

import errno
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.errors import ModelFormatError


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Everything a model must remember, by name, sharing its memory; a tied weight once, under its first name."""
    seen: set[int] = set()
    found = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def write_tensors(path: Path, tensors: Mapping[str, Tensor], notes: dict[str, str] | None = None) -> None:
    """`notes` go into the head of the file."""
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, notes)
    except SafetensorError as error:  # how safetensors reports a full disk
        raise OSError(errno.EIO, str(error), str(path)) from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelFormatError(f"{path}: not readable as safetensors ({error}); copy the folder again") from error


def check_match(expected: Mapping[str, Tensor], found: Mapping[str, Tensor], where: Path) -> None:
    """Refuses tensors whose names, shapes or types are not those expected."""
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            raise ModelFormatError(f"{where}: no tensor {name!r}; expected a file of the same recipe")
        if name not in expected:
            raise ModelFormatError(f"{where}: unknown tensor {name!r}; expected a file of the same recipe")
        ours, theirs = expected[name], found[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            raise ModelFormatError(
                f"{where}: tensor {name!r} is {theirs.dtype} {tuple(theirs.shape)}, the recipe makes it "
                f"{ours.dtype} {tuple(ours.shape)}; expected a file of the same recipe"
            )


@torch.no_grad()
def fill(into: Mapping[str, Tensor], found: Mapping[str, Tensor], where: Path) -> None:
    """Copies `found` into tensors that exist; every name, shape and type agrees, or nothing is copied."""
    check_match(into, found, where)
    for name, tensor in into.items():
        tensor.copy_(found[name])


@torch.no_grad()
def finite(tensors: Mapping[str, Tensor]) -> bool:
    values = [x for x in tensors.values() if x.is_floating_point() and x.numel()]
    return all(bool(norm.isfinite()) for norm in torch._foreach_norm(values, torch.inf)) if values else True
