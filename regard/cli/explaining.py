"""The command that looks into a model: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, large_import, regard

NUMBER = click.IntRange(min=1)


@regard.command()
@click.argument("model", type=FILE)
@click.argument("text", required=False)
@click.option("--target", metavar="TEXT", help="Explain this output instead of the one that the model would write.")
@click.option(
    "--kind",
    type=click.Choice(["encoder", "decoder", "cross"]),
    help="Who looks at whom: source at source, output at output, output at source. Default: cross if there is one.",
)
@click.option(
    "--layer", type=NUMBER, help="Of this layer, counted from 1. Default: where source and output agree most."
)
@click.option("--head", type=NUMBER, help="This head alone, counted from 1. Default: the mean of the layer's heads.")
@click.option(
    "--map",
    "maps",
    type=click.Choice(["attention", "rollout", "gradient", "rise"]),
    multiple=True,
    help="What each token of the output depends on, by this method, instead of one layer's weights; repeatable. With "
    "--kind decoder, how it depends on what was written before.",
)
@click.option(
    "--masks",
    type=click.IntRange(min=10),
    metavar="N",
    help="Of rise: ask at most so often; default: 4000, and 300 where a page has it unasked.",
)
@click.option("--faithful", is_flag=True, help="How far to believe the maps: all that there are, if none is named.")
@click.option("--check", is_flag=True, help="Also say what is wrong with the output, as far as the model can tell.")
@click.option("--plain", is_flag=True, help="A page of what is asked for and no more: no rise, no check by itself.")
@click.option("--words", is_flag=True, help="Draw words instead of the pieces that the model reads and writes.")
@click.option("--n-best", type=click.IntRange(1, 64), default=1, show_default=True, help="Explain the N best outputs.")
@click.option(
    "--alternatives",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    help="Likeliest tokens to name in the place of each one.",
)
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="Write a file instead: .html is a page to click through, .svg and .png one map, .json everything.",
)
@click.option("--beside", type=FILE, metavar="MODEL", help="Show what this model makes of it beside, on the page.")
@click.option("--json", "as_json", is_flag=True, help="Everything, all layers and heads: one JSON object an output.")
@click.pass_context
def explain(context: click.Context, /, model: Path, **options: Any) -> None:
    """What a model looked at, and what else it expected, while it wrote the translation of TEXT.

    Without TEXT, every line of stdin is explained. The output is replayed, so the weights are exact. A classifier of
    texts shows its label, a parser its brackets; a language model and an encoder (regard fill) show how they read TEXT.

    --map tells what the output depends on. rise asks the model again and again with words left out, and so it needs no
    attention; the others are quicker, and --faithful says how they compare. --check looks for an output that hardly
    depends on its source, repeats itself, leaves words out, or that the model itself finds improbable. A page has rise
    (if no --map is named) and what --check finds, for models that can tell; --plain leaves them out, which is quicker.

    \b
      regard explain models/en-de "A man rides a bike."
      regard explain models/en-de "A man rides a bike." --out bike.html
      regard explain models/en-de --plain --out quick.html < sentences.txt
      regard explain models/en-de --beside models/old --out both.html < sentences.txt
      regard explain models/en-de "A man rides a bike." --words --layer 2 --head 3 --out bike.svg
      regard explain models/en-de "A man rides a bike." --target "Ein Mann fährt Rad."
      regard explain models/en-de "A man rides a bike." --map rise --map rollout --faithful
      regard explain models/en-de "A man rides a bike." --check --target "Ein Hund schläft."
      regard explain models/en-de --json < sentences.txt > explanations.jsonl
      regard explain models/bard "To be or not to be"
    """
    if options["target"] is not None and options["text"] is None:
        raise click.UsageError("--target belongs to one TEXT; give it, and not by stdin", context)
    with large_import():
        from regard.commands.explain import ExplainRequest, explain_texts
        from regard.commands.explain_page import write_explanations

    request = ExplainRequest(**options)
    if request.out:
        write_explanations(model, request)
    else:
        explain_texts(model, request)
