"""BLEU without each head, in a file that an interrupted measurement goes on from."""

import json
from collections.abc import Mapping
from pathlib import Path

from regard.errors import DataError
from regard.files import write_atomically


class FinishedHeads:
    """`scores` by the name of the head; `inputs` are the checksums of what they were measured with."""

    def __init__(self, path: Path | None, inputs: Mapping[str, str]) -> None:
        self.path, self.inputs = path, dict(inputs)
        self.scores: dict[str, float] = {} if path is None or not path.exists() else read_scores(path, self.inputs)

    def add(self, head: str, score: float) -> None:
        """Remembered, on disk too if there is a file for it."""
        self.scores[head] = score
        if self.path is not None:
            content = {"inputs": self.inputs, "bleu": self.scores}
            write_atomically(self.path, json.dumps(content, indent=2) + "\n")


def read_scores(path: Path, inputs: Mapping[str, str]) -> dict[str, float]:
    """What `add` wrote for the same inputs; another file is refused, so that nothing is mixed up or written over."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        content = None
    match content:
        case {"inputs": dict(theirs), "bleu": dict(scores)} if all(isinstance(x, float) for x in scores.values()):
            if theirs == inputs:
                return scores
            raise DataError(f"{path}: measured with another model or other texts; choose another --out")
    raise DataError(f"{path}: no file of finished heads; choose another --out")
