"""`regard score`: log p of given pairs."""

import sys
from pathlib import Path

from regard.commands.streams import to_json
from regard.data.readers import read_parallel
from regard.engine import load


def score_files(model: Path, source: Path, target: Path, *, as_json: bool) -> None:
    """log p(target | source) of every pair, one a line."""
    pairs = list(read_parallel(source, target))
    for score in load(model).score(pairs):
        if as_json:
            line = {"log_probability": score.log_probability, "tokens": score.tokens, "perplexity": score.perplexity}
            sys.stdout.write(to_json(line) + "\n")
        else:
            sys.stdout.write(f"{score.log_probability:.6f}\n")
