"""CTranslate2 on our exported weights: `python -m benchmarks.peers.ctranslate2_decoding PLAN`, in its environment.

Asked {"beam": b} it translates all sources, asked {"beam": b, "sentence": i} one of them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2

from benchmarks.peers.turns import Answers, serve

BATCH_TOKENS = 1024  # 512 to 4096 were tried, and it decodes about as fast with each


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers = Answers()
    folder = Path(plan["exported"])
    names = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    ids = {name: id for id, name in enumerate(names)}
    sources = [[names[id] for id in source] for source in plan["sources"]]
    translator = ctranslate2.Translator(
        str(folder),
        compute_type=plan["compute"],
        inter_threads=plan["workers"],
        intra_threads=plan["threads"],
    )

    def work(asked: dict[str, Any]) -> dict[str, Any]:
        given = sources if "sentence" not in asked else [sources[asked["sentence"]]]
        results = translator.translate_batch(
            given,
            beam_size=asked["beam"],
            length_penalty=plan["length_penalty"],
            max_decoding_length=plan["longest"],
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
            return_end_token=True,  # the penalty divides by a length that counts it, as ours does
        )
        outputs = [[ids[name] for name in result.hypotheses[0]] for result in results]
        return {"outputs": [output[:-1] if output[-1] == plan["eos"] else output for output in outputs]}

    serve(answers, work)


if __name__ == "__main__":
    main()
