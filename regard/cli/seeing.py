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
@click.option("--json", "as_json", is_flag=True, help="One JSON object an image, or one for all that have labels.")
@click.option(
    "--map",
    "kind",
    type=click.Choice(["attention", "rollout", "gradient", "rise"]),
    help="What the label of one image depends on. attention, the default of the options below: where a layer looks. "
    "rollout: through all layers. gradient: as far as that speaks for the label. rise: measured, by hiding pixels.",
)
@click.option("--svg", type=FILE, metavar="FILE.svg", help="Draw the map over the image.")
@click.option("--png", type=FILE, metavar="FILE.png", help="The same as a PNG file.")
@click.option("--layer", type=int, metavar="N", help="With --map attention: counted from 1; default: the last.")
@click.option("--head", type=int, metavar="N", help="With --map attention: this one, counted from 1, not all.")
@click.option(
    "--masks", type=click.IntRange(min=10), metavar="N", help="With --map rise: ask at most so often; default: 4000."
)
@click.option(
    "--faithful", is_flag=True, help="How fast p of the label falls and rises as pixels go and come by the map."
)
def see(model: Path, images: tuple[Path, ...], **options: Any) -> None:
    """Say what is on IMAGES: files, folders of them, or idx files.

    Where labels come along (a folder with a folder for each label, an .npz file, an idx file with --labels), say how
    often the model finds them, and what it takes for what.

    \b
      regard train --images flowers/ --out models/flowers --budget 15m
      regard see models/flowers tulip.jpg --svg tulip.svg
      regard see models/flowers tulip.jpg --map rise --svg tulip.svg --faithful
      regard see models/flowers held-out-flowers/
      regard see models/mnist t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz
    """
    with large_import():
        from regard.commands.classify_images import SeeRequest, classify_images
        from regard.commands.map_image import MapRequest

    of_map = {name: options.pop(name) for name in ("kind", "svg", "png", "layer", "head", "masks", "faithful")}
    classify_images(model, images, SeeRequest(map=MapRequest(**of_map), **options))
