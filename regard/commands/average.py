"""`regard average`: one model from several."""

import sys
from collections.abc import Sequence
from pathlib import Path

from regard.recipe.averaging import average_folders


def average_models(models: Sequence[Path], out: Path, last: int | None) -> None:
    """A new model directory whose weights are the mean of several."""
    count = average_folders(models, out, last)
    sys.stdout.write(f"{out}: the average of {count} sets of weights\n")
