"""Our torch engine beside an explainer of the same model: `python -m benchmarks.peers.regard_explaining PLAN`.

A text has been explained before the first turn, so that whatever explaining leaves behind is there.
"""

import json
import os
import sys
from pathlib import Path

from benchmarks.peers.regard_decoding import answer
from benchmarks.peers.turns import Answers
from regard.allocator import settle_allocator
from regard.engine import load
from regard.explainer import Asked, load_explainer


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers, model = Answers(), Path(plan["weights"]).parent
    explainer = load_explainer(model)
    explainer.explain(plan["texts"][0], Asked(maps=("gradient",), concerns=True))
    answer(plan, load(model).write, answers)
    assert explainer


if __name__ == "__main__":
    settle_allocator(["translate"], os.environ)  # as the command does
    main()
