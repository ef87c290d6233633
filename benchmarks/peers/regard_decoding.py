"""Our torch engine as `regard translate` uses it: `python -m benchmarks.peers.regard_decoding PLAN`.

Text in, text out, tokenisers included. Asked {"beam": b} it translates all sources, asked {"beam": b, "sentence": i}
one of them, asked {"beam": b, "first": i, "last": j} those in [i, j).
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.turns import Answers, serve
from regard.allocator import settle_allocator
from regard.decoding.options import SearchOptions
from regard.engine import load
from regard.workers import Workers

Write = Callable[[Sequence[str], SearchOptions], Iterable[str]]


def answer(plan: dict[str, Any], write: Write, answers: Answers) -> None:
    texts = plan["texts"]

    def work(asked: dict[str, Any]) -> dict[str, Any]:
        # As CTranslate2 ends a search: the same work.
        search = SearchOptions(beam=asked["beam"], length_penalty=plan["length_penalty"], patience=1.0)
        if "sentence" in asked:
            return {"texts": list(write([texts[asked["sentence"]]], search))}
        return {"texts": list(write(texts[asked.get("first", 0) : asked.get("last", len(texts))], search))}

    serve(answers, work)


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers, model = Answers(), Path(plan["weights"]).parent
    if plan["workers"] == 1:
        answer(plan, load(model, shortlist=plan["shortlist"]).write, answers)
        return
    with Workers(model, plan["workers"], shortlist=plan["shortlist"]) as workers:
        answer(plan, workers.write, answers)


if __name__ == "__main__":
    settle_allocator(["translate"], os.environ)  # as the command does
    main()
