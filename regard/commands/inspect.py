"""`regard inspect`: what is in a model directory."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from regard.commands.streams import to_json
from regard.engine import open_folder
from regard.files import check_manifest
from regard.models.interface import SequenceToSequence, parameters
from regard.recipe.folder import open_finished
from regard.recipe.recipe import to_yaml

SIGNED = ("bleu", "chrf", "ter")  # scores that come with a signature


def inspect_model(model: Path, *, as_json: bool) -> None:
    """Sizes, vocabulary, recipe, scores and files of a model directory."""
    folder = open_folder(model, open_finished(model).task.kind)
    facts = check_manifest(model)
    recipe, vocabularies = folder.recipe, folder.vocabularies
    sizes = {"source": len(vocabularies.source), "target": len(vocabularies.target)}
    summary = {
        "model": recipe.model.kind,
        "parameters": parameters(folder.model),
        "parts": part_sizes(folder.model),
        "vocabulary": {"kind": recipe.text.kind, **sizes},
        "validation": facts.get("validation"),
        "recipe": recipe.model_dump(mode="json"),
        "files": facts["files"],
    }
    if as_json:
        sys.stdout.write(to_json(summary) + "\n")
    else:
        summary["yaml"] = to_yaml(recipe)
        sys.stdout.write("".join(f"{line}\n" for line in described(summary)))


def described(summary: Mapping[str, Any]) -> Iterator[str]:
    """The summary for people, line by line."""
    yield f"{summary['model']}, {summary['parameters']:,} parameters"
    yield from (f"  {part}: {count:,}" for part, count in summary["parts"].items() if count)
    yield "vocabulary: " + pairs_of(summary["vocabulary"])
    for name, score in (summary["validation"] or {}).items():
        yield f"validation {name}: " + (
            f"{score['score']:.2f}  {score['signature']}" if name in SIGNED else f"{score:g}"
        )
    yield from ("recipe:", *(f"  {line}" for line in summary["yaml"].splitlines()))
    yield from (f"{digest[:12]}  {name}" for name, digest in summary["files"].items())


def pairs_of(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def part_sizes(model: SequenceToSequence) -> dict[str, int]:
    """Parameters of each part of encoder and decoder; a weight that two parts share counts in both."""
    return {
        f"{side}.{name}": parameters(child)
        for side in ("encoder", "decoder")
        for name, child in model.get_submodule(side).named_children()
    }
