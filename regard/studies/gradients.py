"""How far a gradient reaches: from the last target token back to each word of the source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.pairs import Pair
from regard.engine import TorchEngine, load
from regard.errors import DataError
from regard.explaining.chart import Point, Series
from regard.explaining.study_page import Contents, Figure, Table
from regard.jobs.translate import learn_vocabularies
from regard.models.interface import SequenceToSequence
from regard.recipe.folder import fresh_model
from regard.recipe.presets import choose
from regard.recipe.recipe import Recipe, overlay, parse, with_settings
from regard.studies.report import Report, TestSet, by_name, how, overview, row_figures
from regard.studies.rows import Plan, Result, Row, corpora
from regard.tasks.translate import Batch, Vocabularies, collate

ROWS = (
    Row("rnn", "rnn"),
    Row("lstm", "rnn", ("model.cell=lstm",)),
    Row("gru", "rnn", ("model.cell=gru",)),
    Row("parameterised-attention", "parameterised-attention"),
    Row("bidirectional-gru", "bidirectional-gru"),
    Row("transformer", "transformer"),
)
SENTENCES = 100
FEWEST = 5  # sentences that must have a distance for its mean to be shown
SMALLEST = 1e-30  # what is less is shown as this: a logarithm has no zero


def gradient_norms(model: SequenceToSequence, batch: Batch) -> Float[Tensor, "n s"]:
    """‖∂ℓ/∂x(i)‖ for every source embedding x(i), with ℓ = −log p(last target token); zeros at padding."""
    source: list[Tensor] = []

    def keep(_module: nn.Module, _tokens: object, rows: Tensor) -> None:
        if not source and rows.dim() == 3:  # what looks up a table of distances has no batch
            source.append(rows)

    handles = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, nn.Embedding)]
    try:
        logits = model(batch.source, batch.source_mask, batch.inputs)
    finally:
        for handle in handles:
            handle.remove()
    last = batch.mask.sum(1) - 1
    rows = torch.arange(len(last))
    loss = F.cross_entropy(logits[rows, last], batch.targets[rows, last], reduction="sum")
    (found,) = torch.autograd.grad(loss, source)  # rows do not meet, so a sum over them keeps them apart
    norms: Tensor = found.norm(dim=-1)
    return norms


def distances(batch: Batch) -> Int[Tensor, "n s"]:
    """(s − 1 − i) + t: the steps of a recurrent network from source position i to the last of t target positions."""
    positions = torch.arange(batch.source.shape[1])
    return batch.source_mask.sum(1, keepdim=True) - 1 - positions + batch.mask.sum(1, keepdim=True)


def by_distance(norms: Float[Tensor, "n s"], batch: Batch) -> dict[int, float]:
    """log₁₀ of the geometric mean of the norms at each distance, nearest first; rare distances are left out.

    Geometric: sentences differ by orders of magnitude, and one would be the mean of all.
    """
    logs, steps = norms.clamp(min=SMALLEST).log10(), distances(batch)
    found: dict[int, list[float]] = {}
    for log, step in zip(logs[batch.source_mask].tolist(), steps[batch.source_mask].tolist(), strict=True):
        found.setdefault(step, []).append(log)
    return {step: sum(values) / len(values) for step, values in sorted(found.items()) if len(values) >= FEWEST}


def slope(curve: Mapping[int, float]) -> float:
    """Least squares of log₁₀ norm on distance, times ten: powers of ten that ten more steps cost (below 0) or bring."""
    steps, logs = list(curve), list(curve.values())
    mean_step, mean_log = sum(steps) / len(steps), sum(logs) / len(logs)
    spread = sum((step - mean_step) ** 2 for step in steps)
    both = sum((step - mean_step) * (log - mean_log) for step, log in curve.items())
    return 10 * both / spread


@dataclass(frozen=True)
class Prepared:
    """The text and its vocabulary, once for all models; `asked` is the recipe of all rows but for the model."""

    asked: Recipe
    pairs: list[Pair]
    validation: list[Pair]
    vocabularies: Vocabularies


def prepare(plan: Plan) -> Prepared:
    recipe, loaded = corpora(plan)
    words = learn_vocabularies(recipe, loaded.corpora)
    return Prepared(recipe, [pair for corpus in loaded.corpora for pair in corpus.pairs], loaded.validation, words)


def rows(plan: Plan) -> Sequence[Row]:
    """Refuses before the first row what could only be refused after the last."""
    text = prepare(plan)
    batch = batch_of(text.vocabularies, text.validation[:SENTENCES])
    refuse_short(by_distance(torch.ones(batch.source.shape), batch))
    return ROWS


def fresh(row: Row, plan: Plan, text: Prepared) -> SequenceToSequence:
    """The row's model before its first step, sized for the text as a training run would size it."""
    tree = overlay(choose(text.pairs, row.preset, text.asked), {"training": {"seed": plan.seed}})
    recipe = parse(with_settings(tree, (*plan.settings, *row.settings)), "study")
    return fresh_model(recipe, text.vocabularies)


def measure(model: SequenceToSequence, words: Vocabularies, pairs: Sequence[Pair]) -> dict[int, float]:
    """In double precision and without dropout."""
    batch = batch_of(words, pairs)
    found = by_distance(gradient_norms(model.double().eval(), batch), batch)
    refuse_short(found)
    return found


def batch_of(words: Vocabularies, pairs: Sequence[Pair]) -> Batch:
    return collate([words.source.encode(p.source) for p in pairs], [words.target.encode(p.target) for p in pairs])


def refuse_short(found: Mapping[int, float]) -> None:
    if len(found) < 2:
        raise DataError(
            f"gradients: {len(found)} distances that at least {FEWEST} words of the validation text have, expected at "
            f"least 2 in its first {SENTENCES} sentences; give longer or more of them"
        )


Curves = dict[str, dict[int, float]]


def curves(rows: Sequence[Row], plan: Plan, folder: Path) -> tuple[Curves, Curves]:
    """Of every row before its first step, and as it lies trained beneath `folder`."""
    text = prepare(plan)
    pairs = text.validation[:SENTENCES]
    before, after = {}, {}
    for row in rows:
        before[row.name] = measure(fresh(row, plan, text), text.vocabularies, pairs)
        engine = load(folder / row.name)
        assert isinstance(engine, TorchEngine)
        after[row.name] = measure(engine.folder.model, engine.vocabularies, pairs)
    return before, after


def report(results: Sequence[Result], _test: TestSet, plan: Plan, folder: Path) -> Report:
    found = by_name(results)
    before, after = curves([row for row in ROWS if row.name in found], plan, folder)
    states = {"fresh": before, "trained": after}
    figures = {
        f"{name}, {state}: powers of ten per 10 steps": slope(curve)
        for state, found in states.items()
        for name, curve in found.items()
    }
    contents = Contents(
        "How far a gradient reaches",
        "Learning that a word matters needs a gradient that reaches it. How much of it is left after k steps?",
        findings(states),
        (table(states), overview(results)),
        tuple(
            Figure(f"log₁₀ of the gradient norm, {state}", tuple(line(*item) for item in found.items()), "steps k")
            for state, found in states.items()
        ),
        (
            f"Norm of the gradient of −log p(last target token) with respect to each source embedding, for "
            f"at most {SENTENCES} sentences of the dev set; the geometric mean of all words at the same "
            "distance. Distance: the steps of a recurrent network between reading the word and the last target token.",
            "Fresh: before the first step of training. Trained: at its end.",
            *how(plan, results),
        ),
    )
    return Report(figures | row_figures(results), contents)


def findings(states: Mapping[str, Curves]) -> tuple[str, ...]:
    return tuple(
        f"{name}, {state}: ten more steps multiply the gradient by {10 ** slope(curve):.2g}."
        for state, found in states.items()
        for name, curve in found.items()
    )


def table(states: Mapping[str, Curves]) -> Table:
    rows = []
    for state, found in states.items():
        for name, curve in found.items():
            (near, first), (far, last) = next(iter(curve.items())), list(curve.items())[-1]
            ends = f"{10**first:.1e} at {near}", f"{10**last:.1e} at {far}"
            rows.append((f"{name}, {state}", *ends, f"{slope(curve):+.2f}"))
    heads = ("", "nearest, steps", "farthest, steps", "powers of ten per 10 steps")
    return Table("Gradient norms", heads, tuple(rows))


def line(name: str, curve: Mapping[int, float]) -> Series:
    points = (Point(float(step), log, f"{name} · {step} steps · {10**log:.1e}") for step, log in curve.items())
    return Series(name, tuple(points))
