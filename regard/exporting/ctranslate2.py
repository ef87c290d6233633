"""A model directory that CTranslate2 reads: its weights and vocabularies beside our recipe and tokenisers.

model.bin config.json *_vocabulary.json (CTranslate2's own)  recipe.yaml  source.* target.* or shared.*  manifest.json
"""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import torch
from sentencepiece import SentencePieceProcessor

from regard.errors import ModelFormatError
from regard.exporting.spec import library, position_rows, refuse_unrepresentable, transformer_spec
from regard.files import check_manifest, refuse_occupied, write_folder, write_manifest
from regard.recipe.folder import ModelFolder, read_model, read_recipe, read_vocabularies, write_recipe
from regard.recipe.models import TransformerOptions
from regard.recipe.recipe import Recipe
from regard.tasks.translate import Vocabularies
from regard.text.tokeniser import Tokeniser

WEIGHTS = "model.bin"
Quantise = Literal["float32", "float16", "int16", "int8"]  # float16 is for the disk: CPUs compute it in float32
QUANTISE = get_args(Quantise)


@dataclass(frozen=True)
class Exported:
    """An exported model, loaded. `source` and `target` are the names by which CTranslate2 knows our ids."""

    recipe: Recipe
    vocabularies: Vocabularies
    source: list[str]
    target: list[str]
    translator: Any  # ctranslate2.Translator
    positions: int | None  # tokens that it has positions for; none: no end


def export_ctranslate2(model: Path, out: Path, quantise: Quantise = "float32") -> None:
    """Writes the directory `out`; one that holds something already is refused."""
    refuse_occupied(out)
    folder = read_model(model)
    refuse_unrepresentable(folder.recipe.model)

    def fill(fresh: Path) -> None:
        fill_folder(folder, fresh, quantise)
        write_manifest(fresh, {"engine": "ctranslate2", "quantise": quantise})

    write_folder(out, fill)


def fill_folder(folder: ModelFolder, fresh: Path, quantise: Quantise) -> None:
    """Everything but the manifest."""
    write_recipe(fresh, folder.recipe, folder.vocabularies)
    spec = full_spec(folder, fresh)
    spec.validate()
    spec.optimize(quantization=quantise)
    spec.save(str(fresh))


def full_spec(folder: ModelFolder, saved: Path) -> Any:
    """The weights with the vocabularies, whose tokenisers were saved in `saved`."""
    options, vocabularies = folder.recipe.model, folder.vocabularies
    refuse_unrepresentable(options)
    assert isinstance(options, TransformerOptions)
    spec = transformer_spec(options, folder.model.state_dict(), position_rows(options, folder.recipe.decoding.cap))
    source, target = ("shared", "shared") if vocabularies.shared else ("source", "target")
    spec.register_source_vocabulary(token_names(vocabularies.source, saved / f"{source}.model"))
    spec.register_target_vocabulary(token_names(vocabularies.target, saved / f"{target}.model"))
    return spec


def token_names(tokeniser: Tokeniser, sentencepiece: Path) -> list[str]:
    """A name for each id, no two alike: SentencePiece's own piece where there is a model of it."""
    if sentencepiece.exists():
        processor = SentencePieceProcessor(model_file=str(sentencepiece))
        return [processor.id_to_piece(id) for id in range(len(tokeniser))]
    names: list[str] = []
    seen: set[str] = set()
    for id in range(len(tokeniser)):
        name = tokeniser.name(id)
        while name in seen:
            name = f"{name}#{id}"
        seen.add(name)
        names.append(name)
    return names


def open_model(path: Path) -> Exported:
    """The exported model in this directory; an ordinary model is exported to a temporary one first."""
    library()  # before reading a model that cannot be used
    if is_exported(path):
        quantise = check_manifest(path).get("quantise", "float32")
        recipe = read_recipe(path)
        return opened(path, recipe, read_vocabularies(path, recipe), quantise)
    folder = read_model(path)
    with TemporaryDirectory(prefix="regard-") as fresh:  # may go once it is loaded
        fill_folder(folder, Path(fresh), "float32")
        return opened(Path(fresh), folder.recipe, folder.vocabularies, "float32")


def is_exported(path: Path) -> bool:
    return (path / WEIGHTS).is_file()


def opened(path: Path, recipe: Recipe, vocabularies: Vocabularies, quantise: str) -> Exported:
    kind = "float32" if quantise == "float16" else "default"  # which it would choose too, but not without a warning
    threads = torch.get_num_threads()
    source, target = ("shared", "shared") if vocabularies.shared else ("source", "target")
    try:
        # Several batches at once, each on one core, keep all cores busy with less waiting than one batch on all.
        translator = library().Translator(str(path), inter_threads=threads, intra_threads=1, compute_type=kind)
    except (RuntimeError, ValueError) as error:
        raise ModelFormatError(f"{path}: ctranslate2 cannot load it ({error}); export it again") from error
    assert isinstance(recipe.model, TransformerOptions)
    rows = position_rows(recipe.model, recipe.decoding.cap)
    return Exported(recipe, vocabularies, read_names(path, source), read_names(path, target), translator, rows)


def read_names(path: Path, side: str) -> list[str]:
    """CTranslate2 writes one list where both sides have the same tokens, whether or not one tokeniser made them."""
    shared = path / "shared_vocabulary.json"
    found = json.loads((shared if shared.exists() else path / f"{side}_vocabulary.json").read_text(encoding="utf-8"))
    return [str(name) for name in found]
