"""How fast a model speaks: output tokens per second, greedy and by beam search, in turns."""

import statistics
import time

from benchmarks.shape import Shape, examples, model
from regard.decoding.bulk import translate
from regard.decoding.options import SearchOptions

# Random weights hardly ever choose the end token, so every output is cut at the length of its source, as captions are.
LENGTHS = {"max_ratio": 1.0, "max_extra": 0}
SEARCHES = {"greedy": SearchOptions(beam=1, **LENGTHS), "beam 5": SearchOptions(beam=5, **LENGTHS)}


def measure(shape: Shape) -> dict[str, float]:
    speaker = model(shape).eval()
    sources = [example.source.tolist() for example in examples(shape.sentences, shape.vocabulary, seed=2)]
    speeds: dict[str, list[float]] = {name: [] for name in SEARCHES}
    for turn in range(shape.warmup + shape.repeats):
        for name, search in SEARCHES.items():
            began = time.perf_counter()
            tokens = sum(len(best[0].tokens) for best in translate(speaker, sources, search))
            if turn >= shape.warmup:
                speeds[name].append(tokens / (time.perf_counter() - began))
    return {f"decoding, {name}, tokens/s: Regard": statistics.median(found) for name, found in speeds.items()}
