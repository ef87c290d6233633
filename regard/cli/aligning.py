"""The command that aligns words: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, large_import, regard

COUNT = click.IntRange(min=1)
STEP = click.Choice(["reading", "writing"])


def layer(value: str) -> int | str:
    """A number from 1, or "all"."""
    if value == "all":
        return value
    if value.isascii() and value.isdecimal() and int(value):
        return int(value)
    raise click.BadParameter(f"{value!r} is neither a number from 1 on nor 'all'")


@regard.command()
@click.argument("model", type=FILE)
@click.option("--source", type=FILE, required=True, help="Source sentences, words between spaces.")
@click.option("--target", type=FILE, required=True, help="Their given translations.")
@click.option("--output", type=FILE, help="Write the links here; with --score, in addition.")
@click.option("--layer", type=layer, metavar="N|all", help="Look at this layer of the decoder, from 1, or at all.")
@click.option("--head", type=COUNT, help="Look at this head of the layer, from 1; the mean of all when not given.")
@click.option(
    "--step",
    type=STEP,
    help="Look where a word is given to the decoder, or one step earlier, where it is about to be written; writing.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Least weight of a link: words that look at no word so much have none.",
)
@click.option(
    "--gold", type=FILE, metavar="LINKS", help="Choose layer, head and step by these links of the same lines."
)
@click.option("--gold-lines", type=COUNT, metavar="N", help="With --gold: choose by the first N lines only.")
@click.option("--reverse", type=FILE, metavar="MODEL", help="A model of the opposite direction, to join its links.")
@click.option("--reverse-layer", type=layer, metavar="N|all", help="With --reverse: as --layer.")
@click.option("--reverse-head", type=COUNT, help="With --reverse: as --head.")
@click.option("--reverse-step", type=STEP, help="With --reverse: as --step.")
@click.option(
    "--symmetrise",
    type=click.Choice(["grow-diag-final-and", "intersection", "union"]),
    help="With --reverse: how links are joined; grow-diag-final-and unless you say.",
)
@click.option("--score", type=FILE, metavar="LINKS", help="Show the alignment error rate against these links instead.")
@click.option("--json", "as_json", is_flag=True, help="With --score: one JSON object.")
def align(model: Path, **options: Any) -> None:
    """Which word of a given translation goes with which of its source, as the model sees it.

    A line `0-0 1-2` for each pair: source word, target word, from 0, words being what stands between spaces. Each
    target word is linked to the source word that it gives most attention to. Links that people made (LINKS) have the
    same form, with `0p2` for a link that is only possible.

    \b
      regard align models/en-de --source test.en --target test.de > test.align
      regard align models/en-de --source test.en --target test.de --gold gold.talp > test.align
      regard align models/en-de --source test.en --target test.de --gold gold.talp --gold-lines 50 --score gold.talp
      regard align models/en-de --source a.en --target a.de --layer 2 --head 3 --reverse models/de-en > a.align
    """
    with large_import():
        from regard.commands.align import AlignRequest, Place, align_files

    place, reverse_place = (
        Place(*(options.pop(f"{side}{name}") for name in ("layer", "head", "step"))) for side in ("", "reverse_")
    )
    align_files(model, AlignRequest(place=place, reverse_place=reverse_place, **options))
