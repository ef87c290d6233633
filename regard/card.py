"""The model card: what a model is, what it was made from, how good it is, how to use it. Written by the trainer."""

import platform
from pathlib import Path

from regard.data.corpus import Report
from regard.evaluation.scores import Scores
from regard.files import write_atomically
from regard.models.interface import parameters
from regard.recipe.folder import CARD, ModelFolder
from regard.training.events import Finished


def write_card(folder: Path, model: ModelFolder, report: Report, scores: Scores, finished: Finished) -> None:
    write_atomically(folder / CARD, card(model, report, scores, finished))


def card(model: ModelFolder, report: Report, scores: Scores, finished: Finished) -> str:
    """Markdown; every number in it was measured in this run."""
    recipe, name = model.recipe, model.path.name
    vocabularies = model.vocabularies
    sizes = f"{len(vocabularies.source):,}" + ("" if vocabularies.shared else f" and {len(vocabularies.target):,}")
    lines = [
        f"# {name}",
        "",
        f"A {recipe.model.kind} model of {parameters(model.model):,} parameters, trained with Regard.",
        "",
        "```",
        f"regard translate {name} < in.txt > out.txt",
        "```",
        "",
        f"## Quality on {scores.sentences:,} validation pairs ({report.origin})",
        "",
        # A list, because the bars of a signature would end the cells of a table.
        *(f"- {score} {found.score:.2f} (`{found.signature}`)" for score, found in scores.named()),
        f"- exact match {scores.exact_match:.2f} %",
        "",
        f"Beam {recipe.decoding.beam}, length penalty {recipe.decoding.length_penalty:g}. Choices made by looking at "
        "validation pairs, of a checkpoint or of a setting, favour them: expect a little less on a test set.",
        "",
        "## Text",
        "",
        *(f"- {line}" for line in report.lines()),
        f"- {recipe.text.kind} vocabulary of {sizes} entries{', shared by both sides' if vocabularies.shared else ''}",
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
