"""`regard train`, a block of steps at a time: `python -m benchmarks.peers.regard_training PLAN`."""

import json
import os
import sys
from pathlib import Path

from benchmarks.peers.turns import Turns
from regard.allocator import settle_allocator
from regard.cli.main import main as regard
from regard.training.events import Skipped, Stepped
from regard.training.loop import Run


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    our_step, turns = Run.step, []

    def step(self: Run) -> Stepped | Skipped:
        turns or turns.append(Turns(plan["steps"]))
        event = our_step(self)
        turns[0].done(event.units)
        return event

    Run.step = step
    sys.argv = ["regard", "train", plan["recipe"], "--out", plan["work"]]
    sys.exit(regard())


if __name__ == "__main__":
    settle_allocator(["train"], os.environ)  # as the command does
    main()
