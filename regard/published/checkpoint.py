"""A published checkpoint: a folder with config.json and weights, read without running anything that came with it."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import ModelFormatError
from regard.training.tensors import finite, read_tensors

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
MARKS = {  # how a tensor is called that the weights of each family have, and of these families no other
    "gpt2": "attn.c_attn.weight",
    "bert": "attention.self.query.weight",
    "t5": "SelfAttention.q.weight",
    "vit": "embeddings.cls_token",
    "marian": "self_attn.q_proj.weight",
}
FAMILIES = tuple(MARKS)
LARGEST = 32 * 2**20  # bytes of a JSON file: names of 20,000 classes and 100,000 tensors have room
SECONDS = 600  # that a conversion may take


@dataclass(frozen=True)
class Checkpoint:
    """What the folder holds; every float tensor is float32 and finite."""

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]


def read_checkpoint(folder: Path, convert: bool = False) -> Checkpoint:
    """The config first: it is small, and says whether the weights are worth reading.

    `convert`: weights that are only there as a pickle are converted first.
    """
    config = read_config(folder)
    name = family(config)
    pickles = convert and not (folder / WEIGHTS).exists() and not (folder / INDEX).exists()
    tensors = read_pickles(folder) if pickles else read_weights(folder)
    refuse_another(name, tensors, folder)
    return Checkpoint(folder, config, tensors)


def read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelFormatError(f"{folder}: no such folder; expected one with {CONFIG} and {WEIGHTS}")
    return read_object(folder / CONFIG)


def family(config: Mapping[str, Any]) -> str:
    """Which of the known families the config is of."""
    found = config.get("model_type")
    if found not in FAMILIES:
        raise ModelFormatError(
            f"{CONFIG}: model_type: found {found!s:.80}, expected one of {', '.join(FAMILIES)}; "
            "Regard reads no other family"
        )
    return str(found)


def refuse_another(name: str, tensors: Iterable[str], folder: Path) -> None:
    """The weights of another family would be refused as well, but for a size or a name that explains nothing."""
    found = {one for one, mark in MARKS.items() if any(tensor.endswith(mark) for tensor in tensors)}
    if found and name not in found:
        raise ModelFormatError(
            f"{folder}: the weights are those of {min(found)}, but {CONFIG} is that of {name}; "
            "copy the checkpoint again"
        )


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file with named values, of bounded size."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise ModelFormatError(f"{path}: found {size:,} bytes, expected {LARGEST:,} at most; not a published file")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelFormatError(f"{path}: {error.strerror}; expected the folder of a published checkpoint") from error
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path}: not valid JSON; copy the checkpoint again") from error
    if not isinstance(content, dict):
        raise ModelFormatError(f"{path}: no named values in it; copy the checkpoint again")
    return content


# ---------------------------------------------------------------- weights
def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors by name, whether in one file or in many; those of any float type as float32."""
    if (folder / WEIGHTS).exists():
        return ready(read_tensors(folder / WEIGHTS), folder / WEIGHTS)
    if (folder / INDEX).exists():
        return read_shards(folder)
    pickles = sorted(path.name for path in folder.glob("*.bin"))
    if pickles:
        raise ModelFormatError(
            f"{folder}: found {pickles[0]}, a pickle, which can run code when it is read, expected {WEIGHTS}; "
            "convert it apart from everything else with: regard import --convert-pickle"
        )
    raise ModelFormatError(f"{folder}: no {WEIGHTS} and no {INDEX}; expected the folder of a published checkpoint")


def read_shards(folder: Path) -> dict[str, Tensor]:
    """Every file that the index names, each with exactly the tensors that the index puts there."""
    found: dict[str, Tensor] = {}
    for path, names in shards(folder / INDEX, ".safetensors").items():
        part = read_tensors(path)
        refuse_others(part, names, path, INDEX)
        found |= ready(part, path)
    return found


def refuse_others(part: Iterable[str], names: set[str], path: Path, index: str) -> None:
    for name in sorted(names.symmetric_difference(part)):
        which = "no tensor" if name in names else "unknown tensor"
        raise ModelFormatError(f"{path}: {which} {name!r}, by what {index} says; copy the checkpoint again")


def shards(where: Path, ending: str) -> dict[Path, set[str]]:
    """The names of the tensors in each file; a file is a plain name, so that nothing outside the folder is read."""
    places = read_object(where).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ModelFormatError(f"{where}: no weight_map in it; copy the checkpoint again")
    files: dict[Path, set[str]] = {}
    for name, file in places.items():
        if not isinstance(file, str) or not file.endswith(ending) or "/" in file or "\\" in file:
            raise ModelFormatError(
                f"{where}: puts tensor {name!r} into {str(file)!r:.80}, "
                f"expected the plain name of a {ending[1:]} file; do not use this folder"
            )
        files.setdefault(where.parent / file, set()).add(name)
    return files


def ready(tensors: Mapping[str, Tensor], where: Path) -> dict[str, Tensor]:
    found = {name: x.float() if x.is_floating_point() else x for name, x in tensors.items()}
    if not finite(found):
        bad = next(name for name, x in found.items() if not finite({name: x}))
        raise ModelFormatError(f"{where}: tensor {bad!r} holds values that are not finite; copy the checkpoint again")
    return found


# ---------------------------------------------------------------- pickles
# The one place that reads a pickle, as data of a process of its own. torch unpickles nothing but tensors; should that
# ever have a hole, the process has no connection, starts no other, and cannot write but through safetensors.
GUARD = """
import os, sys

FORBIDDEN = ("socket.", "subprocess.", "ctypes.", "pty.", "shutil.", "os.exec", "os.fork", "os.posix_spawn",
             "os.spawn", "os.system", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink",
             "os.truncate", "os.chmod", "os.chown", "os.kill")

def guard(event, arguments):
    writes = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
    if writes or event.startswith(FORBIDDEN):
        raise PermissionError(f"it tried {event}")

sys.addaudithook(guard)
"""
CONVERSION = f"""
import torch
from safetensors.torch import save_file
{GUARD}
source, target = sys.argv[1:]
found = torch.load(source, map_location="cpu", weights_only=True)
if not isinstance(found, dict) or not found:
    sys.exit("no named tensors in it")
for name, tensor in found.items():
    if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
        sys.exit(f"{{str(name)[:80]!r}} is no tensor")
save_file({{name: tensor.detach().clone().contiguous() for name, tensor in found.items()}}, target)
"""


def read_pickles(folder: Path) -> dict[str, Tensor]:
    """All tensors by name of one pickled file, or of those that the index names, each converted by its own process."""
    if (folder / PICKLE).exists() or not (folder / PICKLE_INDEX).exists():
        return converted(folder / PICKLE)
    found: dict[str, Tensor] = {}
    for path, names in shards(folder / PICKLE_INDEX, ".bin").items():
        part = converted(path)
        refuse_others(part, names, path, PICKLE_INDEX)
        found |= part
    return found


def converted(path: Path) -> dict[str, Tensor]:
    with tempfile.TemporaryDirectory(prefix="regard-") as place:
        fresh = Path(place) / WEIGHTS
        convert_pickle(path, fresh)
        return ready(read_tensors(fresh), path)


def sources(folder: Path) -> list[Path]:
    """The files that say what the model is: its config and its weights."""
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    return [path for path in (folder / CONFIG, *weights) if path.is_file()]


def convert_pickle(source: Path, target: Path) -> None:
    """`target` holds the tensors of a pickled file as safetensors, or is not there.

    A process of its own reads the pickle: without environment, under a guard, for `SECONDS` at most.
    """
    if not source.is_file():
        raise ModelFormatError(f"{source}: no such file; expected named tensors as a pickle")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".convert") as folder:
        fresh = Path(folder) / target.name
        command = [sys.executable, "-I", "-B", "-c", CONVERSION, str(source.resolve()), str(fresh.resolve())]
        try:
            ended = subprocess.run(
                command, cwd=folder, env={}, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ModelFormatError(f"{source}: not converted within {SECONDS} s; use a smaller file") from None
        if ended.returncode or not fresh.exists():
            reason = (ended.stderr.strip().splitlines() or [f"it ended with {ended.returncode}"])[-1]
            raise ModelFormatError(f"{source}: not converted ({reason:.200}); expected named tensors and nothing else")
        fresh.replace(target)
