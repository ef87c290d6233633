"""The command that parses: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, large_import, regard


@regard.command()
@click.argument("model", type=FILE)
@click.option("--input", "source", type=FILE, help="Read this file instead of stdin.")
@click.option("--output", type=FILE, help="Write the trees here; with --gold, under the tags of the treebank.")
@click.option("--beam", type=click.IntRange(1, 64), help="Trees kept in parallel; 1 is greedy.")
@click.option(
    "--form",
    type=click.Choice(["brackets", "text", "json"]),
    default="brackets",
    show_default=True,
    help="A tree on each line, a drawing for the terminal, or a JSON object on each line.",
)
@click.option("--svg", type=FILE, metavar="FILE", help="Also draw all trees into one picture.")
@click.option("--gold", type=FILE, metavar="TREES", help="Parse the sentences of this treebank instead, and score.")
@click.option("--json", "as_json", is_flag=True, help="As --form json; with --gold, the scores as one JSON object.")
def parse(model: Path, **options: Any) -> None:
    """The constituency tree of each sentence: a line in, a tree out, words between spaces, order kept.

    Whatever the model has learned, each tree is well formed and stands over exactly the words of its line. Punctuation
    marks are words: set them apart by spaces, as the treebank does. Tags are not guessed: every word has XX.

    \b
      regard train --trees train.trees --out models/parser --budget 20m
      echo "The cat sleeps ." | regard parse models/parser
      echo "The cat sleeps ." | regard parse models/parser --form text --svg cat.svg
      regard parse models/parser --gold dev.trees --json
    """
    with large_import():
        from regard.commands.parse import ParseRequest, parse_lines

    parse_lines(model, ParseRequest(**options))
