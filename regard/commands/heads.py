"""`regard heads`: what each head of a translator is worth, and a smaller model without those that are worth least."""

import math
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64
from rich.console import Console
from torch import Tensor

from regard.ablation import Ablation, load_ablation
from regard.commands.colours import colour_of
from regard.commands.finished_heads import FinishedHeads
from regard.commands.progress import timed
from regard.commands.streams import to_json
from regard.commands.wrapping import labelled
from regard.data.readers import read_parallel
from regard.errors import DecodingError
from regard.evaluation.scores import Score
from regard.explaining.heads import Habit, Head
from regard.explaining.heatmap import Colour, svg, terminal
from regard.files import digest, refuse_occupied, write_atomically
from regard.layers.loss import perplexity
from regard.models.interface import parameters
from regard.recipe.folder import WEIGHTS
from regard.recipe.pruning import prune, write_pruned

SHARES = "a number of heads such as 12, or a share of them such as 0.25 or 25%"
KINDS = ("encoder", "decoder", "cross")  # in the order in which a text goes through them
NEVER_LOOKED = Habit(math.nan, ())  # of a head on texts that were all too long


@dataclass(frozen=True)
class HeadsRequest:
    """What a user asks of `regard heads`; `out` is the smaller model of `prune`, or the finished heads of `bleu`."""

    source: Path
    reference: Path
    bleu: bool = False
    prune: str | None = None
    out: Path | None = None
    svg: Path | None = None
    as_json: bool = False


def study_heads(model: Path, request: HeadsRequest) -> None:
    """Measures every head, or writes a model that has fewer."""
    refuse_unheard(request)
    ablation = load_ablation(model, list(read_parallel(request.source, request.reference)))
    if request.prune is None:
        measure_heads(ablation, request)
    else:
        prune_heads(ablation, request)


def refuse_unheard(request: HeadsRequest) -> None:
    """An option that would change nothing is a mistake."""
    if request.svg is not None and request.svg.suffix.lower() != ".svg":
        raise DecodingError(f"--svg {request.svg}: the picture is an SVG file; let its name end in .svg")
    if request.prune is None:
        if request.out is not None and not request.bleu:
            raise DecodingError(
                f"--out {request.out}: is for finished heads of --bleu, or the model of --prune; use it with either"
            )
        return
    if request.bleu or request.svg is not None:
        name = "bleu" if request.bleu else "svg"
        raise DecodingError(f"--{name}: is about every head, and --prune removes some; leave one of the two out")
    if request.out is None:
        raise DecodingError(f"--prune {request.prune}: makes a new model; say where with --out DIR")
    refuse_occupied(request.out)


def told(name: str) -> Callable[[Sequence[Any]], Iterator[Any]]:
    """What tells whoever waits how far the batches of some work are."""
    return lambda batches: timed(batches, len(batches), name)


# ---------------------------------------------------------------- what each is worth
@dataclass(frozen=True)
class Worth:
    """One head: the loss of a token without it, how much the loss depends on it, what it does, BLEU without it."""

    head: Head
    loss: float
    importance: float
    habit: Habit
    bleu: float | None

    def rise(self, whole: float) -> float:
        """By how many percent perplexity rises without it."""
        return 100 * math.expm1(self.loss - whole)


@dataclass(frozen=True)
class Measured:
    """The model as it is, and every head of it, the dearest first."""

    loss: float
    bleu: Score
    heads: tuple[Worth, ...]


def measure_heads(ablation: Ablation, request: HeadsRequest) -> None:
    """The table, the map and the picture, or JSON."""
    found = measured(ablation, request)
    title = "rise of perplexity without the head, in %"
    drawn, columns, rows = rises(found)
    if request.svg is not None:
        write_atomically(request.svg, svg(drawn, columns, rows, title) + "\n")
    if request.as_json:
        sys.stdout.write(to_json(as_json(ablation, found)) + "\n")
        return
    lines = [*summary(ablation, found), "", f"{title}; across: heads", terminal(drawn, columns, rows, colour())]
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, "", *table(found)]))


def measured(ablation: Ablation, request: HeadsRequest) -> Measured:
    finished = finished_heads(ablation, request)  # a wrong file is refused before the work begins
    losses = ablation.losses(told("loss without each head"))
    importance = ablation.importance(progress=told("importance of all heads"))
    habits, whole = ablation.habits(), ablation.bleu()
    scores = bleu_of_each(ablation, finished) if request.bleu else {}
    each = (
        Worth(head, loss, importance[head], habits.get(head, NEVER_LOOKED), scores.get(head))
        for head, loss in losses.without.items()
    )
    return Measured(losses.whole, whole, tuple(sorted(each, key=lambda one: -one.loss)))


def finished_heads(ablation: Ablation, request: HeadsRequest) -> FinishedHeads:
    inputs = {"weights": ablation.folder.path / WEIGHTS, "source": request.source, "reference": request.reference}
    return FinishedHeads(request.out, {name: digest(path) for name, path in inputs.items()})


def bleu_of_each(ablation: Ablation, finished: FinishedHeads) -> dict[Head, float]:
    """A translation of all texts for each head; what is finished already is not measured again."""
    left = [head for head in ablation.heads if str(head) not in finished.scores]
    for head in timed(left, len(left), "BLEU without each head"):
        finished.add(str(head), ablation.bleu([head]).score)
    return {head: finished.scores[str(head)] for head in ablation.heads}


# ---------------------------------------------------------------- for people
def colour() -> Colour:
    return colour_of(Console())


def rises(found: Measured) -> tuple[Float64[Tensor, "layers h"], list[str], list[str]]:
    """The map: a row for each kind and layer, a column for each head; what is not there, or does harm, is 0."""
    heads = sorted((one.head for one in found.heads), key=lambda head: (KINDS.index(head.kind), head.layer))
    rows = list(dict.fromkeys(f"{head.kind}·{head.layer}" for head in heads))
    drawn = torch.zeros(len(rows), max(head.head for head in heads), dtype=torch.float64)
    for one in found.heads:
        row = rows.index(f"{one.head.kind}·{one.head.layer}")
        drawn[row, one.head.head - 1] = max(one.rise(found.loss), 0.0)
    return drawn, [str(head + 1) for head in range(drawn.shape[1])], rows


def summary(ablation: Ablation, found: Measured) -> Iterator[str]:
    yield f"{len(ablation.pairs):,} sentences of {ablation.tokens:,} target tokens, {len(found.heads)} heads"
    yield f"loss of a token {found.loss:.4f}, perplexity {perplexity(found.loss):.2f}"
    yield f"BLEU {found.bleu.score:.2f}    {found.bleu.signature}"


def table(found: Measured) -> Iterator[str]:
    """A line for each head, the dearest first. BLEU is what is lost or won without it."""
    bleu = f"{'BLEU':>8}" if any(one.bleu is not None for one in found.heads) else ""
    yield f"{'head':<14}{'perplexity':>12}{'importance':>12}{bleu}{'entropy':>9}  roles"
    for one in found.heads:
        lost = "" if one.bleu is None else f"{one.bleu - found.bleu.score:>+8.2f}"
        worth = f"{one.rise(found.loss):>+10.2f} %{one.importance:>12.5f}{lost}{one.habit.entropy:>9.2f}"
        yield f"{one.head!s:<14}{worth}  {', '.join(one.habit.roles)}".rstrip()


def as_json(ablation: Ablation, found: Measured) -> dict[str, Any]:
    heads = [
        {
            **place(one.head),
            "loss": one.loss,
            "importance": one.importance,
            "bleu": one.bleu,
            "entropy": None if math.isnan(one.habit.entropy) else one.habit.entropy,
            "roles": list(one.habit.roles),
        }
        for one in found.heads
    ]
    return {
        "model": str(ablation.folder.path),
        "sentences": len(ablation.pairs),
        "tokens": ablation.tokens,
        "loss": found.loss,
        "perplexity": perplexity(found.loss),
        "bleu": {"score": found.bleu.score, "signature": found.bleu.signature},
        "heads": heads,
    }


def place(head: Head) -> dict[str, str | int]:
    return {"kind": head.kind, "layer": head.layer, "head": head.head}


# ---------------------------------------------------------------- a smaller model
def prune_heads(ablation: Ablation, request: HeadsRequest) -> None:
    """Chooses, cuts, measures what was cut, writes it, and says what it cost."""
    assert request.prune is not None
    assert request.out is not None
    removed = ablation.least(wanted(request.prune, len(ablation.heads)), told("importance of the heads that are left"))
    less = Ablation(prune(ablation.folder, removed), ablation.pairs)
    before, after = state(ablation), state(less)
    lines = list(cost(before, after))
    write_pruned(less.folder, request.out, card(request.out.name, ablation, removed, lines))
    if request.as_json:
        found = {"out": str(request.out), "removed": [place(head) for head in removed]}
        sys.stdout.write(to_json({**found, "before": asdict(before), "after": asdict(after)}) + "\n")
        return
    names = labelled("removed", ", ".join(map(str, removed)), room=9)
    sys.stdout.write("".join(f"{line}\n" for line in [names, "", *lines, "", f"written to {request.out}"]))


def wanted(asked: str, total: int) -> int:
    """12 → 12; of 48 heads, 0.25 or 25% → 12."""
    share = asked.endswith("%") or "." in asked
    try:
        number = float(asked.removesuffix("%")) if share else int(asked)
    except ValueError:
        raise DecodingError(f"--prune {asked}: expected {SHARES}") from None
    if not share:
        return int(number)
    part = number / 100 if asked.endswith("%") else number
    if not 0 < part < 1:
        raise DecodingError(f"--prune {asked}: no share between nothing and all; give {SHARES}")
    return max(1, int(part * total))


@dataclass(frozen=True)
class State:
    """How large a model is, and how good on the pairs: the loss is that of a token."""

    heads: int
    parameters: int
    loss: float
    perplexity: float
    bleu: float


def state(ablation: Ablation) -> State:
    loss = ablation.loss()
    size = len(ablation.heads), parameters(ablation.model)
    return State(*size, loss, perplexity(loss), ablation.bleu().score)


def cost(before: State, after: State) -> Iterator[str]:
    yield f"{'':<12}{'before':>14}{'after':>14}"
    yield f"{'heads':<12}{before.heads:>14,}{after.heads:>14,}"
    yield f"{'parameters':<12}{before.parameters:>14,}{after.parameters:>14,}"
    yield f"{'perplexity':<12}{before.perplexity:>14.2f}{after.perplexity:>14.2f}"
    yield f"{'BLEU':<12}{before.bleu:>14.2f}{after.bleu:>14.2f}"


def card(name: str, ablation: Ablation, removed: Collection[Head], lines: Sequence[str]) -> str:
    measure = "\n".join(f"    {line}" for line in lines)
    return (
        f"# {name}\n\n`{ablation.folder.path.resolve().name}` without {len(removed)} of its {len(ablation.heads)} "
        f"attention heads, those on which its loss depended least: {', '.join(map(str, removed))}. Nothing was trained "
        f"afterwards.\n\nOn the {len(ablation.pairs):,} pairs by which they were chosen:\n\n{measure}\n"
    )
