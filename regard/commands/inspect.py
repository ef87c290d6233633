"""`regard inspect`: what is in a model directory."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from regard.commands.streams import to_json
from regard.data.image_lexicon import ImageLexicon
from regard.engine import refuse_exported
from regard.files import check_manifest
from regard.models.interface import parameters
from regard.recipe.folder import Lexicon
from regard.recipe.opening import open_any
from regard.recipe.recipe import Recipe, to_yaml
from regard.tasks.classify import Classes
from regard.tasks.translate import Vocabularies

SIGNED = ("bleu", "chrf", "ter")  # scores that come with a signature


def inspect_model(model: Path, *, as_json: bool) -> None:
    """Sizes, vocabulary, recipe, scores and files of a model directory."""
    refuse_exported(model)
    folder = open_any(model)
    facts, recipe = check_manifest(model), folder.recipe
    summary = {
        "model": recipe.model.kind,
        "parameters": parameters(folder.model),
        "parts": part_sizes(folder.model),
        **lexicon_facts(recipe, folder.lexicon),
        "validation": facts.get("validation"),
        "recipe": recipe.model_dump(mode="json"),
        "files": facts["files"],
    }
    if as_json:
        sys.stdout.write(to_json(summary) + "\n")
    else:
        summary["yaml"] = to_yaml(recipe)
        sys.stdout.write("".join(f"{line}\n" for line in described(summary)))


def lexicon_facts(recipe: Recipe, lexicon: Lexicon) -> dict[str, Any]:
    """What a model reads and answers, in numbers."""
    if isinstance(lexicon, ImageLexicon):
        (rows, columns), labels = lexicon.size, len(lexicon.labels)
        return {"images": {"rows": rows, "columns": columns, "channels": lexicon.channels, "labels": labels}}
    if isinstance(lexicon, Classes):
        sizes = {"source": len(lexicon.tokeniser), "labels": len(lexicon.labels)}
    else:
        assert isinstance(lexicon, Vocabularies)
        sizes = {"source": len(lexicon.source), "target": len(lexicon.target)}
    return {"vocabulary": {"kind": recipe.text.kind, **sizes}}


def described(summary: Mapping[str, Any]) -> Iterator[str]:
    """The summary for people, line by line."""
    yield f"{summary['model']}, {summary['parameters']:,} parameters"
    yield from (f"  {part}: {count:,}" for part, count in summary["parts"].items() if count)
    yield from (f"{name}: {pairs_of(summary[name])}" for name in ("vocabulary", "images") if name in summary)
    for name, score in (summary["validation"] or {}).items():
        yield f"validation {name}: " + (
            f"{score['score']:.2f}  {score['signature']}" if name in SIGNED else f"{score:g}"
        )
    yield from ("recipe:", *(f"  {line}" for line in summary["yaml"].splitlines()))
    yield from (f"{digest[:12]}  {name}" for name, digest in summary["files"].items())


def pairs_of(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def part_sizes(model: nn.Module) -> dict[str, int]:
    """Parameters of each part of encoder, decoder or head; a weight that two parts share counts in both."""
    return {
        f"{side}.{name}" if name else side: parameters(part)
        for side, whole in model.named_children()
        for name, part in (list(whole.named_children()) or [("", whole)])
    }
