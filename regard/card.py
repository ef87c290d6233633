"""The model card: what a model is, what it was made from, how good it is, how to use it. Written by the trainer."""

import platform
from pathlib import Path

from regard.files import write_atomically
from regard.jobs.interface import Prepared, Verdict
from regard.models.interface import parameters
from regard.recipe.folder import CARD
from regard.training.events import Finished


def write_card(folder: Path, prepared: Prepared, verdict: Verdict, finished: Finished) -> None:
    write_atomically(folder / CARD, card(folder.name, prepared, verdict, finished))


def card(name: str, prepared: Prepared, verdict: Verdict, finished: Finished) -> str:
    """Markdown; every number in it was measured in this run."""
    recipe = prepared.recipe
    lines = [
        f"# {name}",
        "",
        f"A {recipe.model.kind} model of {parameters(prepared.model):,} parameters, trained with Regard.",
        "",
        "```",
        *verdict.usage,
        "```",
        "",
        *verdict.scores,
        "",
        "## Text",
        "",
        *(f"- {line}" for line in [*prepared.report.lines(), *verdict.text]),
        "",
        "## Training",
        "",
        f"{finished.steps:,} steps, {finished.epochs:.1f} epochs, {finished.seconds / 60:.1f} minutes on "
        f"{platform.machine()} ({platform.system()}), seed {recipe.training.seed}; final weights: {finished.weights}.",
        "",
        "Every value of the recipe is in `recipe.yaml`, the course of the run in `training.jsonl`, what was read and "
        "left out in `data.json`. `manifest.json` lists each file with its sha256, which is checked when the model is "
        "loaded. The folder `checkpoints` serves to resume or average and may be deleted.",
        "",
        "## Limits",
        "",
        "The model knows what its text shows and nothing else: other domains, spellings and much longer sentences "
        "will be worse than the scores above.",
        "",
    ]
    return "\n".join(lines)
