"""What explaining costs: decoding beside an explainer that nobody asks, and RISE on one sentence."""

import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.stage import Peer, Player, in_turns, players, say
from regard.explainer import Asked, TranslationExplainer
from regard.explaining.dependence import Asking, last
from regard.explaining.leaving_out import written_in
from regard.explaining.rise import Stop

ROUNDS = 60  # that count, of decoding with and without
CASTS = 3  # times that the processes are started anew
TOKENS, MASKS = 15, 2000
BEAM = 5


def unused(model: Path, texts: Sequence[str], work: Path) -> dict[str, float]:
    """Decoding speed with an explainer alive over that without: the median over rounds of the quotient of a round.

    Both decode the same part of the texts, one right after the other, and who begins changes from round to round: what
    slows the machine for a while slows both. New processes every few rounds, for one that was lucky with its memory
    stays so. The spread is half of the interval that holds the true median in 95 of 100 such measurements.
    """
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
    quotients: list[float] = []
    for cast in range(CASTS):
        with players(peers if cast % 2 == 0 else peers[::-1], work) as started:
            quotients += rounds(started, len(texts))
    low, high = interval(quotients)
    return {"recorder_unused_ratio": statistics.median(quotients), "recorder_unused_spread": (high - low) / 2}


def rounds(started: Sequence[Player], texts: int) -> Iterator[float]:
    """Seconds alone over seconds beside an explainer, of each round but the first, which warms up."""
    count, part = ROUNDS // CASTS, math.ceil(texts / (ROUNDS // CASTS))
    for number in range(count + 1):
        first = (number % count) * part
        asked = {"beam": BEAM, "first": first, "last": first + part}
        seconds = {player.name: player.turn(asked)["seconds"] for player in in_turns(started, number)}
        say(f"  round {number}: " + ", ".join(f"{name} {each:.2f} s" for name, each in seconds.items()))
        if number:
            yield seconds["regard_decoding"] / seconds["regard_explaining"]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median of what was drawn from lies, in 95 of 100 cases at least, by order alone: the sign test's.

    P(fewer than k of n draws lie below the median) = Σ over i < k of C(n, i) / 2ⁿ; both ends together at most 5 %. Too
    few draws are between their ends.
    """
    n, below, k = len(values), 0.0, 0
    while 2 * (below := below + math.comb(n, k) / 2**n) <= 0.05:
        k += 1
    ordered = sorted(values)
    return ordered[max(k - 1, 0)], ordered[n - max(k, 1)]


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
