"""A package for Argos Translate, which LibreTranslate uses too: one file that it installs and translates with.

A zip of one folder: metadata.json  sentencepiece.model  model/ (CTranslate2)  minisbd/ (sentence splitter)  README.md
"""

import json
import re
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from babel import Locale

from regard.errors import RecipeError, RegardError
from regard.exporting.ctranslate2 import Quantise, full_spec
from regard.exporting.search import NEVER
from regard.exporting.spec import refuse_unrepresentable
from regard.exporting.splitter import splitter
from regard.recipe.folder import CARD, ModelFolder, read_model
from regard.recipe.recipe import Recipe

SHARED = "shared.model"
BANNED = -1e4  # added to a logit: no probability is left


@dataclass(frozen=True)
class Languages:
    """The codes by which Argos knows the two languages, ISO 639 where there is one."""

    source: str
    target: str


def export_argos(model: Path, out: Path, languages: Languages, quantise: Quantise = "float32") -> None:
    """Writes the package `out`; one that is there already is refused."""
    if out.exists():
        raise RegardError(f"{out}: already exists; choose another --out")
    refuse_codes(languages)
    folder = read_model(model)
    refuse_unrepresentable(folder.recipe.model)
    refuse_tokeniser(folder.recipe)
    fresh = out.with_name(f".{out.name}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="regard-") as place:
            package = Path(place) / f"translate-{languages.source}_{languages.target}"
            fill_package(package, folder, languages, quantise)
            pack(package, fresh)
        fresh.replace(out)
    except OSError as error:
        raise RegardError(f"{out}: not written ({error.strerror}); make room or choose another place") from error
    finally:
        with suppress(OSError):
            fresh.unlink()


def refuse_codes(languages: Languages) -> None:
    for option, code in (("--from-code", languages.source), ("--to-code", languages.target)):
        if not re.fullmatch(r"[A-Za-z]{2,8}(-[A-Za-z0-9]+)*", code):  # it becomes a part of a path
            raise RegardError(f"{option} {code}: not a language code; expected, for example, en or de")


def refuse_tokeniser(recipe: Recipe) -> None:
    if recipe.text.kind not in ("bpe", "unigram"):
        raise RecipeError(
            f"text.kind: Argos cannot cut text into {recipe.text.kind}, only bpe or unigram; train such a model"
        )
    if not recipe.text.shared:
        raise RecipeError("text.shared: Argos has one tokeniser for both languages, found false; train with true")


def fill_package(package: Path, folder: ModelFolder, languages: Languages, quantise: Quantise) -> None:
    for part in (package / "model", package / "minisbd"):
        part.mkdir(parents=True)
    folder.vocabularies.source.save(package, "shared")
    spec = full_spec(folder, package)
    (package / SHARED).rename(package / "sentencepiece.model")
    ban(spec)
    spec.validate()
    spec.optimize(quantization=quantise)
    spec.save(str(package / "model"))
    (package / "minisbd" / "rules.onnx").write_bytes(splitter())
    (package / "metadata.json").write_text(json.dumps(metadata(languages), indent=2) + "\n", encoding="utf-8")
    if (folder.path / CARD).exists():
        (package / "README.md").write_bytes((folder.path / CARD).read_bytes())


def ban(spec: Any) -> None:
    """Argos does not say which tokens must never come out, so that the weights have to."""
    projection = spec.decoder.projection
    bias = projection.bias if projection.has_bias() else torch.zeros(len(projection.weight))
    projection.bias = bias.index_fill(0, torch.tensor(sorted(NEVER)), BANNED)


def metadata(languages: Languages) -> dict[str, str]:
    return {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": languages.source,
        "from_name": name(languages.source),
        "to_code": languages.target,
        "to_name": name(languages.target),
    }


def name(code: str) -> str:
    """The language in English, or its code where it is no common one."""
    known: str = Locale("en").languages.get(code.lower(), code)
    return known


def pack(package: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(package.rglob("*")):
            packed.write(path, path.relative_to(package.parent))
