"""Files that are whole or not there: written beside their target, forced to disk, renamed; and their checksums."""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import ModelFormatError, RegardError

FORMAT = 1
MANIFEST = "manifest.json"


def write_atomically(path: Path, content: bytes | str) -> None:
    """`path` holds all of `content`, or what it held before; text is UTF-8.

    Order: write `.NAME.tmp` → fsync it → rename over the target → fsync the folder. One writer at a time.
    """
    fresh = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)
        _sync(fresh)
        fresh.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise _refusal(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()


def write_folder(target: Path, fill: Callable[[Path], None]) -> None:
    """`target` is a folder that `fill` filled completely, or what it was before.

    Order: fill `.NAME.tmp` → fsync every file, then every folder → rename → fsync the parent. A folder cannot be
    renamed over a full one, so an earlier target first moves aside to `.NAME.old`; `settle` repairs a crash between.
    """
    fresh, old = _temporary(target), _aside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        settle(target)
        fresh.mkdir()
        fill(fresh)
        for path in sorted(fresh.rglob("*"), reverse=True):  # children before their folder
            _sync(path)
        _sync(fresh)
        if target.exists():
            target.replace(old)
        fresh.replace(target)
        _sync(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise _refusal(target, error) from error
    finally:
        # Whatever failed, the earlier folder goes back to its name and nothing half-written stays.
        shutil.rmtree(fresh, ignore_errors=True)
        if old.exists() and not target.exists():
            old.rename(target)


def refuse_occupied(out: Path) -> None:
    """A place for a new folder: there is nothing, or an empty one."""
    if out.is_dir() and not any(out.iterdir()):
        return
    if out.exists():
        raise RegardError(f"{out}: already exists; choose another --out")


def settle(target: Path) -> None:
    """Removes what a killed `write_folder` left; killed between its two renames, the old folder comes back."""
    fresh, old = _temporary(target), _aside(target)
    if fresh.exists():
        shutil.rmtree(fresh)
    if old.exists():
        if target.exists():
            shutil.rmtree(old)
        else:
            old.rename(target)


def manifest(folder: Path) -> dict[str, str]:
    """sha256 by name of the files directly in `folder`, except hidden ones and the manifest itself."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != MANIFEST and not path.name.startswith("."):
            found[path.name] = digest(path)
    return found


def write_manifest(folder: Path, extra: Mapping[str, Any]) -> None:
    """`manifest.json`: format version, checksums of the files that are there now, and `extra` beside them."""
    clash = {"format", "files"} & extra.keys()
    assert not clash, f"the manifest itself writes {clash}"
    content = {"format": FORMAT, "files": manifest(folder), **extra}
    write_atomically(folder / MANIFEST, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def check_manifest(folder: Path) -> dict[str, Any]:
    """The content of `manifest.json`, after every listed file was found to be there and unchanged.

    Files that are not listed are allowed: people put notes beside a model.
    """
    path = folder / MANIFEST
    content = _read_manifest(path)
    for name, expected in content["files"].items():
        if not isinstance(expected, str) or "/" in name or "\\" in name or name in ("", ".", ".."):
            raise ModelFormatError(f"{path}: lists {name!r}, which is not a plain file name; do not use this folder")
        if not (folder / name).is_file():
            raise ModelFormatError(f"{folder / name}: missing, though the manifest lists it; copy the folder again")
        found = digest(folder / name)
        if found != expected:
            raise ModelFormatError(
                f"{folder / name}: changed since it was written (sha256 {found[:12]}…, manifest {expected[:12]}…); "
                "copy the folder again"
            )
    return content


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelFormatError(f"{path}: {error.strerror}; expected a folder that Regard wrote completely") from error
    except ValueError as error:
        raise ModelFormatError(f"{path}: not valid JSON; copy the folder again") from error
    if not isinstance(content, dict) or not isinstance(content.get("files"), dict):
        raise ModelFormatError(f"{path}: no list of files in it; expected a manifest that Regard wrote")
    if content.get("format") != FORMAT:
        raise ModelFormatError(
            f"{path}: format {content.get('format')!r}, this Regard reads {FORMAT}; use the Regard that wrote it"
        )
    return content


def digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _refusal(path: Path, error: OSError) -> RegardError:
    reason = error.strerror or str(error)
    return RegardError(
        f"{path}: not written ({reason}), what was there before is intact; make room or choose another place"
    )
