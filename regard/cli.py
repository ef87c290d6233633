"""The command line: options in, calls out. Nothing here computes, and torch is imported only by commands that do."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from regard.errors import RegardError

FILE = click.Path(path_type=Path)
ENGINE = click.option(
    "--engine",
    type=click.Choice(["torch", "ctranslate2"]),
    default="torch",
    show_default=True,
    help="What computes. ctranslate2 takes Transformers, exported by `regard export` or not.",
)
WORKERS = click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that translate; default: one for each core from 1,000 lines on, else 1.",
)
SHORTLIST = click.option(
    "--shortlist", is_flag=True, help="Faster: only the target tokens that training showed for each source token."
)
HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@contextmanager
def large_import() -> Iterator[None]:
    """torch makes many objects that stay: looking for garbage among them, now and at the end, takes half a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@click.group(context_settings=HELP)
@click.option("--debug", is_flag=True, expose_value=False, help="First of all: show the whole traceback of an error.")
@click.version_option(package_name="regard")
def regard() -> None:
    """Train, understand and serve attention models on the machine you have.

    \b
    Two files are enough:
      regard train --source train.en --target train.de --out models/en-de
      regard translate models/en-de < in.txt > out.txt
      regard evaluate models/en-de --source test.en --target test.de
    No files yet?
      regard demo --out demo
    """


@regard.command()
@click.argument("recipe", type=FILE, required=False)
@click.option("--source", type=FILE, help="Text to translate from, one sentence a line (.gz and .xz too).")
@click.option("--target", type=FILE, help="The same lines in the other language.")
@click.option("--tsv", type=FILE, help="Instead: one file of source<TAB>target lines.")
@click.option("--jsonl", type=FILE, help='Instead: one file of {"source": …, "target": …} lines.')
@click.option("--valid-source", type=FILE, help="Validation text; carved out of the training text when not given.")
@click.option("--valid-target", type=FILE, help="The same lines in the other language.")
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
    """Learn a model from parallel text, from a RECIPE or from two files alone.

    \b
      regard train --source train.en --target train.de --out models/en-de --budget 20m
      regard train recipes/multi30k-en-de.yaml --out models/m30k --set model.heads=8
      regard train --resume models/en-de
    Ctrl-C saves and stops; --resume goes on from there, with the recipe and the text that the run began with.
    """
    from regard.run import Request, run

    request = Request(recipe=recipe, settings=settings, resume=resume, **options)
    if run(request).interrupted:
        raise KeyboardInterrupt


@regard.command()
@click.argument("model", type=FILE)
@click.option("--input", "source", type=FILE, help="Read this file instead of stdin.")
@click.option("--output", type=FILE, help="Write this file instead of stdout.")
@click.option("--beam", type=click.IntRange(1, 64), help="Hypotheses kept in parallel; 1 is greedy.")
@click.option(
    "--n-best", type=click.IntRange(1, 64), default=1, show_default=True, help="Output lines for each input line."
)
@click.option("--length-penalty", type=float, help="Scores are log p / length^penalty.")
@click.option("--prefix", help="Every output begins with this text.")
@click.option("--sample", is_flag=True, help="Draw outputs at random instead of searching for the best.")
@click.option("--temperature", type=float, help="With --sample: below 1 is safer.")
@click.option("--top-k", type=int, help="With --sample: only the k likeliest tokens.")
@click.option("--top-p", type=float, help="With --sample: only the likeliest tokens of this total mass.")
@click.option("--seed", type=click.IntRange(min=0), help="With --sample: the same seed and line, the same draws.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with scores and tokens.")
@ENGINE
@WORKERS
@SHORTLIST
def translate(model: Path, **options: Any) -> None:
    """Translate stdin to stdout, line by line, order kept.

    \b
      regard translate models/en-de < in.txt > out.txt
      echo "A man rides a bike." | regard translate models/en-de --beam 8 --n-best 3 --json
    """
    with large_import():
        from regard.commands import TranslateRequest, translate_lines

    translate_lines(model, TranslateRequest(**options))


@regard.command()
@click.argument("model", type=FILE)
@click.option("--source", type=FILE, required=True, help="Text to translate.")
@click.option("--target", type=FILE, required=True, help="Its reference translation.")
@click.option("--beam", type=click.IntRange(1, 64), help="Hypotheses kept in parallel; 1 is greedy.")
@click.option("--output", type=FILE, help="Also write the translations here.")
@click.option("--by-length", is_flag=True, help="Also show quality by source length.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@ENGINE
@WORKERS
@SHORTLIST
def evaluate(model: Path, **options: Any) -> None:
    """Translate a test set and score it: BLEU, chrF, TER with signatures, exact match, perplexity."""
    with large_import():
        from regard.commands import EvaluateRequest, evaluate_files

    evaluate_files(model, EvaluateRequest(**options))


@regard.command()
@click.argument("model", type=FILE)
@click.option("--source", type=FILE, required=True, help="Source sentences.")
@click.option("--target", type=FILE, required=True, help="Their given translations.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def score(model: Path, source: Path, target: Path, as_json: bool) -> None:
    """log p of each given pair, one number a line."""
    from regard.commands import score_files

    score_files(model, source, target, as_json=as_json)


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
    from regard.commands import average_models

    average_models(models, out, last)


@regard.command()
@click.argument("model", type=FILE)
@click.option("--to", type=click.Choice(["ctranslate2", "argos"]), required=True, help="The program to export for.")
@click.option("--out", type=FILE, required=True, help="The directory (ctranslate2) or file (argos) to make.")
@click.option(
    "--quantise",
    type=click.Choice(["float32", "float16", "int16", "int8"]),
    default="float32",
    show_default=True,
    help="How weights are stored; int8 is a quarter of the size.",
)
@click.option("--from-code", metavar="CODE", help="With --to argos: the source language, for example en.")
@click.option("--to-code", metavar="CODE", help="With --to argos: the target language, for example de.")
def export(model: Path, **options: Any) -> None:
    """Write a model for use without torch: by CTranslate2, or by Argos Translate and LibreTranslate.

    \b
      regard export models/en-de --to ctranslate2 --out models/en-de-int8 --quantise int8
      regard translate models/en-de-int8 --engine ctranslate2 < in.txt > out.txt
      regard export models/en-de --to argos --from-code en --to-code de --out en_de.argosmodel
    """
    from regard.commands import ExportRequest, export_model

    export_model(model, ExportRequest(**options))


@regard.command()
@click.argument("model", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def inspect(model: Path, as_json: bool) -> None:
    """What is in a model directory: sizes, vocabulary, recipe, scores, files and their checksums."""
    from regard.commands import inspect_model

    inspect_model(model, as_json=as_json)


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


def main() -> int:
    """0 done, 1 the input or the recipe is wrong, 2 usage, 130 interrupted; a mistake is one line on stderr."""
    arguments = sys.argv[1:] or ["--help"]
    debug = arguments[0] == "--debug"
    try:
        # Not `regard.main`, which has its own answers to an interrupt and to a closed pipe.
        with regard.make_context("regard", arguments) as context:
            regard.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        return complain(usage(error), error.exit_code)
    except KeyboardInterrupt:
        return complain("interrupted", 130)
    except BrokenPipeError:
        # The reader went away (`| head`): nothing left to say, now or when Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (RegardError, OSError) as error:
        if debug:
            raise
        return complain(reason(error), 1)
    return 0


def complain(message: str, code: int) -> int:
    """The message as one line on stderr, whatever is in it; returns the exit code."""
    click.echo(f"regard: {' '.join(message.splitlines())}", err=True)
    return code


def usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return error.format_message().rstrip(".") + (f"; see {context.command_path} --help" if context else "")


def reason(error: RegardError | OSError) -> str:
    if isinstance(error, RegardError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
