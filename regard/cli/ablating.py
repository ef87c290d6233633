"""The command that takes heads away: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, large_import, regard


@regard.command()
@click.argument("model", type=FILE)
@click.option("--source", type=FILE, required=True, help="Text to translate.")
@click.option("--reference", type=FILE, required=True, help="Its translation, line by line.")
@click.option("--bleu", is_flag=True, help="Also what BLEU costs: a translation of the whole text for each head.")
@click.option("--prune", metavar="N|SHARE", help="Remove the heads that matter least: 12 of them, 0.25 or 25%.")
@click.option(
    "--out",
    type=FILE,
    help="With --prune: the smaller model. With --bleu: a file of finished heads, from which the same command goes on.",
)
@click.option("--svg", type=FILE, metavar="FILE.svg", help="Also draw the map of all heads into this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def heads(model: Path, **options: Any) -> None:
    """What each attention head of a translator is worth, and a smaller model without those that are worth least.

    Each head is taken away by itself, without training: how much does perplexity rise? Beside it, how much the loss
    depends on the head (by gradient, all heads in one pass), how widely it looks, and what its role is.

    \b
      regard heads models/en-de --source dev.en --reference dev.de --svg heads.svg
      regard heads models/en-de --source dev.en --reference dev.de --bleu --out heads.json
      regard heads models/en-de --source dev.en --reference dev.de --prune 25% --out models/en-de-pruned
    The pruned model is a model like others: smaller files, and every command takes it. Choose heads by one text, and
    measure by another: regard compare models/en-de models/en-de-pruned --source test.en --target test.de
    """
    with large_import():
        from regard.commands.heads import HeadsRequest, study_heads

    study_heads(model, HeadsRequest(**options))
