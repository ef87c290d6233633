"""CTranslate2 on our exported weights: `python -m benchmarks.peers.ctranslate2_decoding PLAN`, in its environment.

Text in, text out. Asked {"beam": b} it translates all texts, asked {"beam": b, "sentence": i} one of them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2

from benchmarks.peers.turns import Answers, serve
from benchmarks.peers.words import Words

BATCH_TOKENS = 1024  # 512 to 4096 were tried, and it decodes about as fast with each


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers = Answers()
    words, texts = Words(plan), plan["texts"]
    end = words.target.id_to_piece(plan["eos"])
    translator = ctranslate2.Translator(
        plan["exported"],
        compute_type=plan["compute"],
        inter_threads=plan["workers"],
        intra_threads=plan["threads"],
    )

    def work(asked: dict[str, Any]) -> dict[str, Any]:
        given = texts if "sentence" not in asked else [texts[asked["sentence"]]]
        results = translator.translate_batch(
            words.names(given),
            beam_size=asked["beam"],
            length_penalty=plan["length_penalty"],
            max_decoding_length=plan["longest"],
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
            return_end_token=True,  # the penalty divides by a length that counts it, as ours does
        )
        outputs = [result.hypotheses[0] for result in results]
        return {"texts": words.texts([output[:-1] if output[-1] == end else output for output in outputs])}

    serve(answers, work)


if __name__ == "__main__":
    main()
