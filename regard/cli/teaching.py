"""Commands by which one model makes what another learns from: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import ENGINE, FILE, SHORTLIST, WORKERS, large_import, regard
from regard.cli.using import DRAWING, TOGETHER, each
from regard.recipe.lineup import LINEUP

BEAM = click.option("--beam", type=click.IntRange(1, 64), help="Hypotheses kept in parallel; 1 is greedy.")
QUIET = click.option("--quiet", is_flag=True, help="No progress on stderr.")


@regard.command()
@click.argument("model", type=FILE)
@click.option("--input", "source", type=FILE, required=True, help="Text in the language to translate INTO (.gz, .xz).")
@click.option("--out", type=FILE, required=True, help="The file to make: made-up source, a tab, a line of the text.")
@click.option("--tag", help="A word that begins every made-up source, so that a model can tell: '<bt>'.")
@click.option("--noise", is_flag=True, help="Leave out a tenth of the made-up words and move the others a little.")
@BEAM
@each(*DRAWING)
@TOGETHER
@ENGINE
@WORKERS
@SHORTLIST
@QUIET
def backtranslate(model: Path, **options: Any) -> None:
    """Make parallel text from text in one language, with a MODEL of the other direction.

    \b
      regard backtranslate models/de-en --input news.de --out synthetic.tsv
      regard train --source train.en --target train.de --tsv synthetic.tsv --out models/en-de
    Pairs that are empty, too long, lopsided or mere copies are left out and counted.
    """
    with large_import():
        from regard.commands.backtranslate import BacktranslateRequest, backtranslate_file

    backtranslate_file(model, BacktranslateRequest(**options))


@regard.command()
@click.argument("teacher", type=FILE)
@click.option(
    "--source", type=FILE, required=True, help="Text to translate from, one sentence a line (.gz and .xz too)."
)
@click.option("--target", type=FILE, help="With --keep-original: its translation by people.")
@click.option("--keep-original", is_flag=True, help="The student also learns from the pairs of --source and --target.")
@click.option(
    "--back", type=FILE, help="With --keep-original: a model of the other direction, which translates --target back."
)
@click.option("--valid-source", type=FILE, help="Validation text; carved out of what is learned from when not given.")
@click.option("--valid-target", type=FILE, help="The same lines in the other language.")
@click.option(
    "--out", type=FILE, required=True, help="Folder for the teacher's translations and OUT/student, the model."
)
@click.option(
    "--preset",
    type=click.Choice(list(LINEUP)),
    metavar="NAME",
    help="What the student is: fast if you do not say; the names are those of `regard train --preset`.",
)
@click.option(
    "--start", type=FILE, help="Instead of --preset: a model whose weights and vocabulary the student begins with."
)
@click.option("--budget", help="Train the student for this wall time: 20m, 1h30m. Translating comes before it.")
@click.option("--steps", type=int, help="Train it for this many steps instead.")
@click.option("--epochs", type=float, help="Train it for this many passes over the text instead.")
@click.option("--seed", type=int, help="The same seed gives the same student.")
@click.option("--set", "settings", multiple=True, metavar="A.B=C", help="Change one value of its recipe; repeatable.")
@BEAM
@TOGETHER
@WORKERS
@SHORTLIST
@QUIET
def distil(teacher: Path, **options: Any) -> None:
    """Train a fast student on what a TEACHER says.

    \b
      regard distil models/en-de --source train.en --out models/fast --budget 30m
      regard translate models/fast/student < in.txt > out.txt
    Ctrl-C saves and stops; the same command again goes on, with translating or with training.
    """
    with large_import():
        from regard.commands.distil import DistilRequest, distil_model

    if distil_model(teacher, DistilRequest(**options)).interrupted:
        raise KeyboardInterrupt
