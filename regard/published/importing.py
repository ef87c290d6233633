"""A published checkpoint's folder as a model directory of ours: read, checked, and only then written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.errors import ModelFormatError, RecipeError
from regard.files import digest, refuse_occupied, write_atomically, write_folder, write_manifest
from regard.models.interface import parameters
from regard.published.checkpoint import CONFIG, Checkpoint, family, read_checkpoint, read_config, sources
from regard.published.families import FAMILIES
from regard.published.family import Family
from regard.published.layout import to_ours
from regard.recipe.folder import CARD, COMMANDS, Lexicon, weights_refused, write_recipe, write_weights
from regard.recipe.reading import bert
from regard.recipe.recipe import Recipe, parse
from regard.tasks.classify import Classes
from regard.training.tensors import fill, weights

Say = Callable[[str], None]
ROOM = 2**20  # numbers that a model may have beyond its weights: position tables that are computed
MEGABYTE = 10**6
USAGE = {  # of each command, for a card
    "translate": "regard translate {} < in.txt > out.txt",
    "generate": 'regard generate {} --prompt "Once upon a time"',
    "fill": 'regard fill {} "Some text with a [MASK] in it."',
    "classify": "regard classify {} < lines.txt > labels.txt",
    "see": "regard see {} image.png",
}


@dataclass(frozen=True)
class Imported:
    """What was made: the family it is of, its size, and the command that uses it."""

    family: str
    parameters: int
    command: str


def import_checkpoint(folder: Path, out: Path, *, convert: bool, say: Say, pairs: bool = False) -> Imported:
    """Writes the model directory `out`; whatever is wrong with the checkpoint is said before it appears.

    `convert`: where there is only a pickle, it is converted in a process of its own. `say` hears how far it has come.
    `pairs`: a classifier learned from pairs of texts, which no checkpoint says of itself.
    """
    refuse_occupied(out)
    name = family(read_config(folder))
    entry = FAMILIES[name]
    files = sources(folder)
    say(f"reading {folder.name}: {sum(path.stat().st_size for path in files) / MEGABYTE:,.1f} MB ...")
    found = read_checkpoint(folder, convert)
    recipe = parse({"data": {}, **entry.sections(found)}, CONFIG)
    refuse_larger_sizes(recipe, found)
    lexicon = paired(entry.words(found), recipe) if pairs else entry.words(found)
    refuse_larger(entry, recipe, lexicon, found)
    say("placing the weights ...")
    model = filled(entry, found, recipe, lexicon)
    made = Imported(name, parameters(model), COMMANDS[recipe.task.kind])
    digests = {path.name: digest(path) for path in files}

    def write(fresh: Path) -> None:
        write_recipe(fresh, recipe, lexicon)
        write_weights(fresh, model)
        write_atomically(fresh / CARD, card(out.name, made, found, digests))
        write_manifest(fresh, {"imported": {"family": name, "from": folder.resolve().name, "files": digests}})

    write_folder(out, write)
    return made


def paired(lexicon: Lexicon, recipe: Recipe) -> Lexicon:
    """The same words for a classifier of pairs; what cannot be one is refused."""
    if not isinstance(lexicon, Classes):
        raise RecipeError(f"--pairs: is for classifiers of texts, found a model to {recipe.task.kind}; leave it out")
    if bert(recipe).segments < 2:
        raise RecipeError(
            "--pairs: the checkpoint has one segment (type_vocab_size 1), so no second text; leave it out"
        )
    return replace(lexicon, pairs=True)


def filled(entry: Family, found: Checkpoint, recipe: Recipe, lexicon: Lexicon) -> nn.Module:
    """Our model with their weights."""
    model = entry.model(recipe, lexicon)
    own = weights(model)
    layout = entry.layout(found, recipe, lexicon)
    fill(own, to_ours(layout, entry.tensors(found), str(found.folder), entry.ignored, like=own), found.folder)
    return model


# ---------------------------------------------------------------- sizes that no weights stand behind
def refuse_larger_sizes(recipe: Recipe, found: Checkpoint) -> None:
    """A config can ask for any size in a few bytes: each is held against what was stored, before memory is taken."""
    held = count(found.tensors.values())
    for key, value in recipe.model:
        if isinstance(value, int) and value > held + ROOM:
            raise ModelFormatError(
                f"{CONFIG}: asks for a {key} of {value:,}, but the weights hold {held:,} numbers in all; "
                "copy the checkpoint again"
            )


def refuse_larger(entry: Family, recipe: Recipe, lexicon: Lexicon, found: Checkpoint) -> None:
    """The same for the whole model, built without memory for its weights."""
    with weights_refused(), torch.device("meta"):
        plan = entry.model(recipe, lexicon)
    held, needed = count(found.tensors.values()), count([*plan.parameters(), *plan.buffers()])
    if needed > 2 * held + ROOM:
        raise ModelFormatError(
            f"{CONFIG}: describes a model of {needed:,} numbers, but the weights hold {held:,}; "
            "copy the checkpoint again"
        )


def count(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors)


# ---------------------------------------------------------------- the card
def card(name: str, made: Imported, found: Checkpoint, digests: Mapping[str, str]) -> str:
    """Markdown: where the model came from, and what is known of it."""
    origin = found.folder.resolve().name
    reading = (
        "- Images are brought to the size, and their pixels to the numbers, that the checkpoint asks for."
        if made.command == "see"
        else "- The tokeniser has an id for every row of the vocabulary, and its special ids are those of the config."
    )
    lines = [
        f"# {name}",
        "",
        f"A {made.family} model of {made.parameters:,} parameters, imported by Regard from the published checkpoint "
        f"`{origin}`.",
        "",
        "```",
        USAGE[made.command].format(name),
        "```",
        "",
        "## Where it came from",
        "",
        *(f"- `{file}`, sha256 {found_digest}" for file, found_digest in digests.items()),
        "",
        "Its text, its authors and its licence are those of the checkpoint; read its own card before you use it.",
        "",
        "## What was checked",
        "",
        f"- Each of the {len(found.tensors)} tensors has its place or is known to mean nothing; none is missing.",
        "- Their sizes are those that the config gives, and every value is finite.",
        reading,
        "",
        "No score was measured: `regard evaluate` does that for a translator, `regard classify` and `regard see` with "
        "labelled examples for a classifier. Every setting is in `recipe.yaml`; what the config does not say, such as "
        "how to train on, has Regard's defaults. `manifest.json` lists each file with its sha256, which is checked "
        "when the model is loaded.",
        "",
    ]
    return "\n".join(lines)
