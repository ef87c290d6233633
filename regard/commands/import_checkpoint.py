"""`regard import`: a published checkpoint as a model directory."""

import sys
from pathlib import Path

from regard.commands.progress import say
from regard.published.importing import import_checkpoint


def import_model(checkpoint: Path, out: Path, *, convert_pickle: bool, pairs: bool) -> None:
    """Writes the directory and says how it is used."""
    # A program that reads stderr wants an error to stand alone.
    tell = say if sys.stderr.isatty() else silent
    made = import_checkpoint(checkpoint, out, convert=convert_pickle, say=tell, pairs=pairs)
    sys.stdout.write(
        f"{out}: {made.family}, {made.parameters:,} parameters, from {checkpoint}; use it with regard {made.command}\n"
    )


def silent(line: str) -> None:
    """Nobody waits."""
