"""Commands that make models: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, regard
from regard.recipe.lineup import LINEUP


@regard.command()
@click.argument("recipe", type=FILE, required=False)
@click.option("--source", type=FILE, help="Text to translate from, one sentence a line (.gz and .xz too).")
@click.option("--target", type=FILE, help="The same lines in the other language.")
@click.option("--tsv", type=FILE, help="Instead, or besides: one file of source<TAB>target lines.")
@click.option("--jsonl", type=FILE, help='Instead, or besides: one file of {"source": …, "target": …} lines.')
@click.option("--text", type=FILE, multiple=True, help="Plain text instead: learn to continue it; repeatable.")
@click.option("--valid-text", type=FILE, multiple=True, help="Its validation text; the last tenth when not given.")
@click.option("--masked", is_flag=True, help="With --text: learn to fill holes in it instead of continuing it.")
@click.option("--denoise", is_flag=True, help="With --text: learn to write the stretches that are left out of it.")
@click.option("--labelled", type=FILE, help="Texts with a label each instead (.tsv, .csv, .jsonl): learn to sort them.")
@click.option("--valid-labelled", type=FILE, help="Its validation texts; held out of the file when not given.")
@click.option("--text-column", metavar="NAME", help="With --labelled: where the text is, if not in 'text'.")
@click.option("--second-column", metavar="NAME", help="With --labelled: where the second text of a pair is.")
@click.option("--label-column", metavar="NAME", help="With --labelled: where the label is, if not in 'label'.")
@click.option("--start", type=FILE, metavar="MODEL", help="Train on: begin with the weights and words of this model.")
@click.option(
    "--images", type=FILE, help="Images instead: a folder with a folder for each label, an .npz file, or an idx file."
)
@click.option("--image-labels", type=FILE, help="The labels of an idx file.")
@click.option("--valid-images", type=FILE, help="Validation images; held out of the others when not given.")
@click.option("--valid-image-labels", type=FILE, help="Their labels, of an idx file.")
@click.option("--trees", type=FILE, multiple=True, help="A treebank instead, (S (NP …) …): learn to parse; repeatable.")
@click.option("--valid-trees", type=FILE, multiple=True, help="Its validation trees; held out when not given.")
@click.option("--valid-source", type=FILE, help="Validation text; carved out of the training text when not given.")
@click.option("--valid-target", type=FILE, help="The same lines in the other language.")
@click.option(
    "--preset",
    type=click.Choice(list(LINEUP)),
    metavar="NAME",
    help=f"Instead of a RECIPE: a model of the line-up, sized for the text. One of {', '.join(LINEUP)}.",
)
@click.option("--vocabulary", type=FILE, metavar="MODEL", help="Use the vocabulary of this model; none is learned.")
@click.option("--out", type=FILE, help="The model directory to make.")
@click.option("--budget", help="Train for this wall time and finish the schedule exactly there: 20m, 1h30m, 90s.")
@click.option("--steps", type=int, help="Train for this many steps instead.")
@click.option("--epochs", type=float, help="Train for this many passes over the text instead.")
@click.option("--seed", type=int, help="The same seed gives the same model.")
@click.option("--set", "settings", multiple=True, metavar="A.B=C", help="Change one value of the recipe; repeatable.")
@click.option(
    "--resume",
    type=FILE,
    metavar="DIR",
    help="Go on with an interrupted run; measured in steps or epochs it ends bit for bit as if never interrupted.",
)
@click.option("--tensorboard", is_flag=True, help="Also log for TensorBoard, in OUT/tensorboard.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def train(recipe: Path | None, settings: tuple[str, ...], resume: Path | None, **options: Any) -> None:
    """Learn a model from parallel text, plain text, labelled texts, trees or images: by a RECIPE or the files alone.

    \b
      regard train --source train.en --target train.de --out models/en-de --budget 20m
      regard train recipes/multi30k-en-de.yaml --out models/m30k --set model.heads=8
      regard train --source train.en --target train.de --out models/gnmt --preset gnmt
      regard train --text shakespeare.txt --out models/bard --budget 15m
      regard train --text reviews.txt --masked --out models/reader --budget 15m
      regard train --labelled reviews.tsv --start models/reader --out models/mood
      regard train --source mine.en --target mine.de --start models/opus-en-de --out models/mine
      regard train --images flowers/ --out models/flowers --budget 15m
      regard train --trees train.trees --valid-trees dev.trees --out models/parser --budget 20m
      regard train --resume models/en-de
    Ctrl-C saves and stops; --resume goes on from there, with the recipe and the text that the run began with.
    """
    from regard.request import Request
    from regard.run import run

    request = Request(recipe=recipe, settings=settings, resume=resume, **options)
    if run(request).interrupted:
        raise KeyboardInterrupt


@regard.command()
@click.argument("models", type=FILE, nargs=-1, required=True)
@click.option("--out", type=FILE, required=True, help="The model directory to make.")
@click.option(
    "--last", type=click.IntRange(min=1), help="One MODEL: its last N checkpoints. Default: all that are there."
)
def average(models: tuple[Path, ...], out: Path, last: int | None) -> None:
    """Average the weights of several MODELS of one recipe, or of the checkpoints of one.

    \b
      regard average models/en-de --last 5 --out models/en-de-average
      regard average models/seed1 models/seed2 --out models/both
    """
    from regard.commands.average import average_models

    average_models(models, out, last)


@regard.command()
@click.option("--out", type=FILE, required=True, help="Folder for the model and the report.")
@click.option("--budget", default="150s", show_default=True, help="Training time.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same dates.")
def demo(out: Path, budget: str, seed: int) -> None:
    """Learn to read dates in dozens of languages, in minutes, without any download.

    "jeudi 3 mars 2022", "3. März 2022" and "2022年3月3日" become 2022-03-03. Shows scores, examples and what the model
    looks at, and writes OUT/report.html.
    """
    from regard.demo import run_demo

    run_demo(out, budget=budget, seed=seed)
