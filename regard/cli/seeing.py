"""Commands that look at images: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, large_import, regard


@regard.command()
@click.argument("model", type=FILE)
@click.argument("images", type=FILE, nargs=-1, required=True)
@click.option("--labels", type=FILE, help="The labels of an idx file: then accuracy and confusions are reported.")
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="Likeliest labels to show.")
@click.option(
    "--own-size", is_flag=True, help="Do not resize: the model's positions are stretched over the image instead."
)
@click.option("--attention", type=FILE, metavar="FILE.svg", help="Also draw where each head of the last layer looks.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object an image, or one for all that have labels.")
def see(model: Path, images: tuple[Path, ...], **options: Any) -> None:
    """Say what is on IMAGES: files, folders of them, or idx files.

    Where labels come along (a folder with a folder for each label, an .npz file, an idx file with --labels), say how
    often the model finds them, and what it takes for what.

    \b
      regard train --images flowers/ --out models/flowers --budget 15m
      regard see models/flowers tulip.jpg --attention tulip.svg
      regard see models/flowers held-out-flowers/
      regard see models/mnist t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz
    """
    with large_import():
        from regard.commands.classify_images import SeeRequest, classify_images

    classify_images(model, images, SeeRequest(**options))
