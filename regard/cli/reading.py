"""Commands that use an encoder: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, large_import, regard


@regard.command()
@click.argument("model", type=FILE)
@click.argument("text")
@click.option("--top", type=click.IntRange(1, 1000), default=5, show_default=True, help="Tokens for each hole.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def fill(model: Path, text: str, top: int, as_json: bool) -> None:
    """What belongs into each [MASK] (or ▢) of TEXT, likeliest first: a line for each hole.

    \b
      regard train --text news.txt --masked --out models/reader --budget 15m
      regard fill models/reader "Paris is the [MASK] of France."
    A hole is one token of the model's vocabulary; two holes in a row can be one longer word.
    """
    with large_import():
        from regard.commands.read import fill_holes

    fill_holes(model, text, top=top, as_json=as_json)


@regard.command()
@click.argument("model", type=FILE)
@click.option("--input", "source", type=FILE, help="Read this file instead of stdin.")
@click.option("--output", type=FILE, help="Write this file instead of stdout; one that ends in .npy for NumPy.")
def embed(model: Path, source: Path | None, output: Path | None) -> None:
    """A vector for each line of stdin: the mean of what the encoder says of its tokens, as a JSON array a line.

    \b
      regard embed models/reader < lines.txt > vectors.jsonl
      regard embed models/reader --input lines.txt --output vectors.npy
    MODEL is a masked language model or a classifier. An empty line has a vector of zeros.
    """
    with large_import():
        from regard.commands.read import embed_lines

    embed_lines(model, source, output)


@regard.command()
@click.argument("model", type=FILE)
@click.option("--input", "source", type=FILE, help="Read this file instead of stdin.")
@click.option("--output", type=FILE, help="Write this file instead of stdout.")
@click.option("--separator", default="\t", help="Between the two texts of a line, for a model of pairs; a tab.")
@click.option("--scores", is_flag=True, help="Also the probability of the label, after a tab.")
@click.option("--labelled", type=FILE, help="Instead of lines: a file of labelled texts, to see how many are right.")
@click.option("--text-column", metavar="NAME", help="With --labelled: where the text is, if not as in training.")
@click.option("--second-column", metavar="NAME", help="With --labelled: where the second text of a pair is.")
@click.option("--label-column", metavar="NAME", help="With --labelled: where the label is.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with the probability of each class.")
def classify(model: Path, **options: Any) -> None:
    """The label of each line of stdin, order kept; or how good the model is on labelled texts.

    \b
      regard train --labelled reviews.tsv --out models/mood
      regard classify models/mood < lines.txt > labels.txt
      echo "a joy from start to end" | regard classify models/mood --scores
      regard classify models/mood --labelled test.tsv
    """
    with large_import():
        from regard.commands.read import ClassifyRequest, classify_lines

    classify_lines(model, ClassifyRequest(**options))
