"""The group that every command joins, and the options that several share."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from regard.errors import ServingError

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


@contextmanager
def serving_parts() -> Iterator[None]:
    """What only `regard[serve]` installs may be missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("h11", "py3langid"):
            raise
        raise ServingError(f'{error.name}: not installed; install it with: pip install "regard[serve]"') from None


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
    Something else to learn from?
      regard train --text FILE --out MODEL             then regard generate
      regard train --text FILE --masked --out MODEL    then regard fill, embed
      regard train --labelled FILE --out MODEL         then regard classify
      regard train --images FOLDER --out MODEL         then regard see
      regard train --trees FILE --out MODEL            then regard parse
    A published model (GPT-2, BERT, T5, ViT, Marian)?
      regard import downloads/gpt2 --out models/gpt2
    No files yet?
      regard demo --out demo
    """
