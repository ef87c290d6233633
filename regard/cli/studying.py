"""Commands that run experiments: options in, calls out."""

from typing import Any

import click

from regard.cli.group import FILE, large_import, regard
from regard.cli.making import train

NAMES = ("table2", "table3", "bottleneck", "levers", "gradients")
LIKE_TRAIN = ("source", "target", "valid_target", "steps", "seed", "settings", "quiet")


@regard.command()
@click.argument("name", type=click.Choice(NAMES))
@click.option(
    "--out", type=FILE, required=True, help="Folder for the rows and the report; where rows are there, go on."
)
@click.option("--test-source", type=FILE, help="With --source: text to be tested on, once for each row.")
@click.option("--test-target", type=FILE, help="The same lines in the other language.")
@click.option("--valid-source", type=FILE, help="With --source: text to choose by.")
@click.option("--budget", help="Wall time of each row: 8m, 1h. Default: 8m.")
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=1,
    help="Rows that learn side by side, each with its share of the cores. Default: 1, with all of them.",
)
@click.option("--rows", multiple=True, metavar="ROW", help="Only this row; repeatable.")
@click.option(
    "--note",
    "notes",
    multiple=True,
    metavar="TEXT",
    help="A sentence for the end of the report: what readers must know of how its rows came about; repeatable.",
)
def study(name: str, **options: Any) -> None:
    """Run a table of the lectures again, at the size of this machine: every row for the same time, then one page.

    \b
      table2       the line-up, from RNN to Transformer, with the chance of every difference
      table3       one thing at a time changed in a Transformer: heads, widths, depth, dropout, positions
      bottleneck   quality by source length, with attention and without
      levers       what lifts quality on little text: vocabulary, dropout, R-Drop, averages, batches ...
      gradients    how far a gradient reaches, in fresh models and in trained ones

    \b
      export REGARD_DATA=/folder/that/holds/multi30k
      regard study table2 --out studies/lineup --budget 8m
      regard study bottleneck --out studies/lineup --budget 8m      # shares rows with table2
    Without files of your own it takes Multi30k, English to German. Ctrl-C stops; the same command goes on.
    """
    with large_import():
        from regard.commands.study import StudyRequest, run_study

    run_study(name, StudyRequest(**options))


# The same options as those of `train`, not copies of them.
study.params += [parameter for parameter in train.params if parameter.name in LIKE_TRAIN]
