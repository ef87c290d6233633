"""What explaining costs: decoding beside an explainer that nobody asks, and RISE on one sentence."""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.stage import Peer, in_turns, players, say
from regard.explainer import Asked, TranslationExplainer
from regard.explaining.dependence import Asking, last
from regard.explaining.leaving_out import written_in
from regard.explaining.rise import Stop

ROUNDS = 11  # that count, of decoding with and without
TOKENS, MASKS = 15, 2000
BEAM = 5


def unused(model: Path, texts: Sequence[str], work: Path) -> dict[str, float]:
    """Decoding speed with an explainer alive over that without: the ratio of the medians over all rounds."""
    plan = {
        "texts": list(texts),
        "weights": str(model.absolute() / "model.safetensors"),  # whose folder is read
        "length_penalty": 1.0,
        "shortlist": False,
        "workers": 1,
    }
    work.mkdir(parents=True, exist_ok=True)
    path = work / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    python = Path(sys.executable)
    peers = [Peer(name, python, name, str(path)) for name in ("regard_decoding", "regard_explaining")]
    seconds: dict[str, list[float]] = {peer.name: [] for peer in peers}
    with players(peers, work) as started:
        for number in range(ROUNDS + 1):
            for player in in_turns(started, number):
                seconds[player.name].append(player.turn({"beam": BEAM})["seconds"])
                say(f"  round {number}: {player.name} {seconds[player.name][-1]:.2f} s")
    alone, beside = (statistics.median(seconds[peer.name][1:]) for peer in peers)  # the first round warms up
    return {"recorder_unused_ratio": alone / beside}


def rise_seconds(explainer: TranslationExplainer, texts: Sequence[str]) -> dict[str, float]:
    """Seconds for the maps over the source and over what was written, each with all its masks, by the first sentence of
    `TOKENS` tokens.
    """
    tokeniser = explainer.vocabularies.source
    text = next(text for text in texts if len(tokeniser.encode(text)) + 1 == TOKENS)
    (found,) = explainer.explain(text, Asked())
    stop = Stop(tolerance=-1.0, most=MASKS)  # which nothing meets
    began = time.perf_counter()
    Asking(explainer.model, written_in(found)).rise(stop, last)
    assert found.target is not None
    return {"rise_seconds": time.perf_counter() - began, "rise_target_tokens": float(len(found.target.tokens))}
