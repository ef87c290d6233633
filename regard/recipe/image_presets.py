"""The recipe for someone who gave images and none: sizes for the images and for how many there are."""

from regard.errors import RecipeError
from regard.recipe.build_vit import common_divisors
from regard.recipe.lineup import Size, Tree

USUAL, MOST, FEWEST = 64, 256, 4  # patches of an image: as many as a CPU likes, as it bears, as show any order
SIZES = {  # by the number of images that stays below
    2_000: Size(width=64, heads=4, feedforward=256, layers=4, dropout=0.1, batch_tokens=2000, learning_rate=0.003),
    200_000: Size(width=128, heads=4, feedforward=512, layers=6, dropout=0.1, batch_tokens=3200, learning_rate=0.003),
}
LARGE = Size(width=256, heads=8, feedforward=1024, layers=8, dropout=0.1, batch_tokens=8192, learning_rate=0.002)
SHIFTED = 14  # an image moves by at most this part of its shorter side: 2 of 28 pixels


def choose_image_classifier(images: int, size: tuple[int, int]) -> Tree:
    """A recipe tree (without its files) for this many images of this size (rows, columns), on a CPU.

    Images move a little while training, which harms nothing that has a label; mirroring would (2 and 5), so it is
    left to who knows the labels.
    """
    sizes = next((sizes for limit, sizes in SIZES.items() if images < limit), LARGE)
    model = {
        "kind": "vit",
        "patch": choose_patch(size),
        "width": sizes.width,
        "heads": sizes.heads,
        "feedforward": sizes.feedforward,
        "layers": sizes.layers,
        "dropout": sizes.dropout,
    }
    training = {"learning_rate": sizes.learning_rate, "schedule": "linear", "ema": 0.995, "optimiser": "muon"}
    data = {"batch_tokens": sizes.batch_tokens, "images": {"shift": min(size) // SHIFTED}}
    return {"data": data, "model": model, "training": training}


def choose_patch(size: tuple[int, int]) -> int:
    """The smallest patch that makes at most USUAL of them, or else the largest that makes a bearable number."""
    rows, columns = size
    counts = {side: (rows // side) * (columns // side) for side in common_divisors(size)}
    bearable = [side for side, count in counts.items() if FEWEST <= count <= MOST]
    if not bearable:
        near = ", ".join(str(max(8, round(side / 4) * 4)) for side in size)
        raise RecipeError(
            f"images of {rows} × {columns} pixels: no square patch makes {FEWEST} to {MOST} equal parts of them; "
            f"let them be resized with --set data.images.size=[{near}]"
        )
    return next((side for side in bearable if counts[side] <= USUAL), bearable[-1])
