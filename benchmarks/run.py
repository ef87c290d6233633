"""Speed on this machine: `python -m benchmarks.run` writes results/bench.json and results/bench.md.

--quick measures a tiny model in seconds, to see that the benchmark works; its figures mean nothing (bench-quick.json).
"""

import argparse
import sys
import time
from pathlib import Path

from benchmarks import decoding, training
from benchmarks.results import RESULTS, Result, page, write
from benchmarks.shape import FULL, QUICK, Shape


def notes(shape: Shape) -> str:
    o = shape.model
    return (
        f"Transformer of {o.encoder_layers}+{o.decoder_layers} layers, width {o.width}, feed-forward {o.feedforward}, "
        f"{o.heads} heads, vocabulary {shape.vocabulary:,}; batches of {shape.batch_tokens:,} tokens of random ids "
        f"with the lengths of image captions. Median of {shape.repeats} after {shape.warmup} that do not count. "
        "Both loops see the same batches in turns; each step is batch, forward, backward, clipping and fused AdamW. "
        f"Decoding: {shape.sentences} sentences, each output as long as its source. Higher is better; "
        "the ratio is Regard over torch.nn.Transformer, batch by batch."
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure speed on this machine.")
    parser.add_argument("--quick", action="store_true", help="a tiny model, in seconds; the figures mean nothing")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen = parser.parse_args()
    shape, name = (QUICK, "bench-quick") if chosen.quick else (FULL, "bench")
    began = time.perf_counter()
    figures = {**training.measure(shape), **decoding.measure(shape)}
    command = "python -m benchmarks.run" + (" --quick" if chosen.quick else "")
    content = write(name, Result(command, (time.perf_counter() - began) / 60, figures, notes(shape)), chosen.out)
    sys.stdout.write(page(name, content))


if __name__ == "__main__":
    main()
