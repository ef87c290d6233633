"""Where the time goes, in one training step and in one batch of beam search: shares by kind of work.

python -m benchmarks.profile     → results/bench-profile.json and .md
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.results import RESULTS, Result, write
from benchmarks.shape import FULL, QUICK, Shape, examples, model, task
from regard.decoding.bulk import translate
from regard.decoding.options import SearchOptions
from regard.models.interface import SequenceToSequence
from regard.native.inference import Native, native
from regard.native.update import Learners, gather
from regard.recipe.inference import for_inference
from regard.training.events import Stepped
from regard.training.loop import train
from regard.training.options import TrainingOptions

MATMUL, ATTENTION, RANDOM, LOSS = "matmul", "attention", "random numbers", "loss"
OPTIMISER, NORM, SEARCH, ELEMENTWISE = "optimiser", "normalisation", "softmax and top-k", "elementwise and copies"
OUTPUT, PYTHON = "output layer with softmax and top-k", "Python and dispatch"
GROUPS = (MATMUL, ATTENTION, RANDOM, LOSS, OPTIMISER, NORM, SEARCH, OUTPUT, ELEMENTWISE, PYTHON)
OPERATIONS = {  # by a part of an operation's name; the first that fits
    "attention": ATTENTION,
    "vector_norm": OPTIMISER,  # clipping
    "_norm": NORM,
    "random_": RANDOM,
    "bernoulli": RANDOM,
    "native_dropout": RANDOM,
    "fused_adam": OPTIMISER,
    "foreach": OPTIMISER,
    "softmax": SEARCH,
    "topk": SEARCH,
    "argmax": SEARCH,
    "sort": SEARCH,
    "logsumexp": SEARCH,
}
COMPILED = {  # scopes whose own time is that of a compiled function
    "Attention": ATTENTION,
    "AttentionBackward": ATTENTION,
    "DropAdd": ELEMENTWISE,
    "DropAddBackward": ELEMENTWISE,
    "Turned": ELEMENTWISE,
    "TurnedBackward": ELEMENTWISE,
    "adamw": OPTIMISER,
    "gather": OPTIMISER,
}
NATIVE = {  # what `Native` does, each in a scope of its name while it is watched
    "product": MATMUL,
    "add_product": MATMUL,
    "past": ATTENTION,
    "memory": ATTENTION,
    "norm": NORM,
    "turn": ELEMENTWISE,
    "best_of_product": OUTPUT,
}
PRODUCTS = {"mm", "mm_", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_"}
# Operations that only describe or reserve memory: their time is that of being called.
EMPTY = {
    "view", "t", "transpose", "permute", "as_strided", "expand", "slice", "select", "narrow", "unsqueeze", "squeeze",
    "reshape", "flatten", "unflatten", "unfold", "unbind", "split", "chunk", "detach", "alias", "empty", "empty_like",
    "empty_strided", "new_empty", "linear", "matmul", "layer_norm", "to", "_to_copy", "resolve_conj", "resolve_neg",
    "result_type", "lift_fresh", "view_as", "expand_as", "set_", "resize_", "item", "_reshape_alias", "_unsafe_view",
    "scaled_dot_product_attention",
}  # fmt: skip
# One step at a time is asked for: the end is never reached. One share: the profiler sees the thread that it is in.
OPTIONS = TrainingOptions(steps=1_000_000, shares=1, saves=1, validations=0)
WARMUP, REPEATS, SENTENCES = 2, 3, 100
SAME_LENGTH = SearchOptions(beam=5, max_ratio=1.0, max_extra=0)  # random weights hardly ever end a sentence


def group(name: str, scopes: Iterable[str]) -> str:
    """The kind of work of an operation inside these scopes.

    A product counts as matmul wherever it stands, but in the optimiser: the output layer's are inside the loss.
    """
    above = " ".join(scopes)
    operation = name.removeprefix("aten::")
    if "Optimizer.step" in above and operation not in EMPTY:
        return OPTIMISER
    if operation in PRODUCTS:
        return MATMUL
    if name in COMPILED | NATIVE:
        return (COMPILED | NATIVE)[name]
    if operation == name or operation in EMPTY:  # a scope, whose own time is what lies between the operations
        return PYTHON
    if "CrossEntropy" in above:
        return LOSS
    return next((kind for part, kind in OPERATIONS.items() if part in operation), ELEMENTWISE)


def scopes_of(event: FunctionEvent) -> Iterable[str]:
    above = event.cpu_parent
    while above is not None:
        yield above.name
        above = above.cpu_parent


def shares(action: Callable[[], object]) -> dict[str, float]:
    """The part of the wall time of one call that each group took; what no operation took is Python's."""
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        began = time.perf_counter()
        action()
        wall = time.perf_counter() - began
    found = dict.fromkeys(GROUPS, 0.0)
    for event in recorded.events():
        found[group(event.name, scopes_of(event))] += event.self_cpu_time_total / 1e6 / wall
    found[PYTHON] = 1 - sum(share for name, share in found.items() if name != PYTHON)
    if found[PYTHON] < 0:
        raise RuntimeError(f"operations took {1 - found[PYTHON]:.2f} of the wall time: some ran at the same time")
    return found


def scope(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The function, each call of which is a scope of this name."""

    def call(*given: Any) -> Any:
        with record_function(name):
            return plain(*given)

    return call


@contextmanager
def watched(speaker: SequenceToSequence) -> Iterator[None]:
    """Every call of `Native` is a scope, and both go layer by layer, or their parts could not be told apart."""
    with ExitStack() as stack:
        for name in NATIVE:
            stack.enter_context(patch.object(Native, name, scope(name, getattr(Native, name))))
        for part in (speaker.encoder, speaker.decoder):
            stack.enter_context(patch.object(part, "weights", None))
        yield


@contextmanager
def by_modules() -> Iterator[None]:
    """No sub-layer is one call, or its parts could not be told apart."""
    with patch("regard.native.sublayer.SUITS", False), patch("regard.native.products.PAYS", False):
        yield


def measured(
    row: str, action: Callable[[], object], watching: Callable[[], AbstractContextManager[None]] = nullcontext
) -> dict[str, float]:
    """Medians over several calls, and the seconds of a call without the profiler, which slows it down."""
    plain = []
    for _ in range(WARMUP + REPEATS):
        began = time.perf_counter()
        action()
        plain.append(time.perf_counter() - began)
    with watching():
        calls = [shares(action) for _ in range(REPEATS)]
    medians = {name: statistics.median(call[name] for call in calls) for name in GROUPS}
    total = sum(medians.values())  # medians of parts add up to 1 only nearly
    figures = {f"{row}: {name}": share / total for name, share in medians.items() if share > 0}
    return figures | {f"{row}: seconds": statistics.median(plain[WARMUP:])}


def measure(shape: Shape = FULL) -> dict[str, float]:
    """Shares of a step of the real training loop, and of a beam search over a batch of sentences."""
    with tempfile.TemporaryDirectory() as folder:
        events = train(model(shape), task(shape), OPTIONS, folder=Path(folder), width=shape.model.width)
        with (
            patch.object(Learners, "take", scope("adamw", Learners.take)),
            patch("regard.training.crew.gather", scope("gather", gather)),
        ):
            step = measured("profile, training", lambda: next(e for e in events if isinstance(e, Stepped)), by_modules)
    speaker = for_inference(shape.model, model(shape).eval())
    sources = [example.source.tolist() for example in examples(SENTENCES, shape.vocabulary, seed=2)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker of `regard translate`
    try:
        return step | measured(
            "profile, decoding",
            lambda: translate(speaker, sources, SAME_LENGTH),
            (lambda: watched(speaker)) if native else nullcontext,
        )
    finally:
        torch.set_num_threads(threads)


def notes(shape: Shape) -> str:
    return (
        f"Parts of the wall time, from torch's profiler, medians of {REPEATS}. Training: one step of the real "
        f"loop, {shape.batch_tokens:,} tokens of random ids with the lengths of captions, vocabulary "
        f"{shape.vocabulary:,}. Decoding: beam {SAME_LENGTH.beam}, {SENTENCES} sentences, outputs as long as "
        "their sources, on one thread, layer by layer, so that parts can be told apart; the seconds are those of all "
        "layers in one call. In training the products of the output layer are matmul; loss is the rest of it. Python "
        "and dispatch is what no operation took; the profiler itself adds to it. The seconds are without the profiler."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny model, in seconds; the figures mean nothing")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen: Any = parser.parse_args(arguments)
    shape, suffix = (QUICK, "-quick") if chosen.quick else (FULL, "")
    began = time.perf_counter()
    figures = measure(shape)
    command = "python -m benchmarks.profile" + (" --quick" if chosen.quick else "")
    result = Result(command, (time.perf_counter() - began) / 60, figures, notes(shape))
    for key, value in write(f"bench-profile{suffix}", result, chosen.out)["figures"].items():
        sys.stdout.write(f"{value:8.3f}  {key}\n")


if __name__ == "__main__":
    main()
