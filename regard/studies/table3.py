"""Table 3: one thing at a time changed in a Transformer, by the paper's own ratios. Vaswani et al. 2017."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.explaining.chart import Point, Series
from regard.explaining.study_page import Contents, Figure, Table
from regard.studies.report import Report, TestSet, by_name, how, learning_curves, overview, row_figures
from regard.studies.rows import Plan, Result, Row

# The paper's base and ours: what a knob is there, and here. Our base is the size that fits Multi30k, with eight heads
# and sinusoids as in the paper.
PAPER: dict[str, float] = {
    **{"heads": 8, "d_k": 64, "N": 6, "d_model": 512, "d_ff": 2048},
    **{"dropout": 0.1, "smoothing": 0.1},
}
OURS: dict[str, float] = PAPER | {"d_k": 24, "N": 3, "d_model": 192, "d_ff": 768}
PLACES = {  # of a knob in a recipe
    "heads": ("model.heads",),
    "d_k": ("model.head_width",),
    "N": ("model.encoder_layers", "model.decoder_layers"),
    "d_model": ("model.width",),
    "d_ff": ("model.feedforward",),
    "dropout": ("model.dropout",),
    "smoothing": ("loss.smoothing",),
}
TAKEN = ("dropout", "smoothing")  # as they are: a probability has no scale
BASE_PPL, BASE_BLEU = 4.92, 25.8


@dataclass(frozen=True)
class Variation:
    """A line of Table 3: the group, the knob, its value there, and dev PPL and BLEU as published."""

    group: str
    knob: str
    value: int | float
    ppl: float
    bleu: float

    @property
    def ours(self) -> float:
        """The value that is to our base what the paper's is to its own."""
        return self.value if self.knob in TAKEN else OURS[self.knob] * self.value / PAPER[self.knob]

    @property
    def row(self) -> Row:
        changed = tuple(f"{place}={self.ours:g}" for place in PLACES[self.knob])
        return Row(f"{self.knob}-{self.value:g}", "transformer", BASE + changed)

    @property
    def said(self) -> str:
        """The knob there, and what stands for it here."""
        here = f"{self.ours:g} of {OURS[self.knob]:g}"
        return f"{self.knob} {self.value:g} of {PAPER[self.knob]:g}" + ("" if self.knob in TAKEN else f" → {here}")


BASE = (
    *(f"{place}={OURS[knob]:g}" for knob, places in PLACES.items() if knob != "d_k" for place in places),
    "model.positions=sinusoid",
)


@dataclass(frozen=True)
class LearnedPositions(Variation):
    """Group (E), which turns no knob."""

    @property
    def row(self) -> Row:
        return Row("learned-positions", "transformer", (*BASE, "model.positions=learned"))

    @property
    def said(self) -> str:
        return "learned positions instead of sinusoids"


VARIATIONS = (
    Variation("A", "heads", 1, 5.29, 24.9),
    Variation("A", "heads", 4, 5.00, 25.5),
    Variation("A", "heads", 16, 4.91, 25.8),
    Variation("A", "heads", 32, 5.01, 25.4),
    Variation("B", "d_k", 16, 5.16, 25.1),
    Variation("B", "d_k", 32, 5.01, 25.4),
    Variation("C", "N", 2, 6.11, 23.7),
    Variation("C", "N", 4, 5.19, 25.3),
    Variation("C", "N", 8, 4.88, 25.5),
    Variation("C", "d_model", 256, 5.75, 24.5),
    Variation("C", "d_model", 1024, 4.66, 26.0),
    Variation("C", "d_ff", 1024, 5.12, 25.4),
    Variation("C", "d_ff", 4096, 4.75, 26.2),
    Variation("D", "dropout", 0.0, 5.77, 24.6),
    Variation("D", "dropout", 0.2, 4.95, 25.5),
    Variation("D", "smoothing", 0.0, 4.67, 25.3),
    Variation("D", "smoothing", 0.2, 5.47, 25.7),
    LearnedPositions("E", "positions", 0, 4.92, 25.7),
)
ROWS = (Row("base", "transformer", BASE), *(one.row for one in VARIATIONS))


# ---------------------------------------------------------------- directions
WORDS = {1: "better", 0: "equal", -1: "worse"}


def direction(row: float, base: float, *, less: bool, decimals: int) -> int:
    """1 better than the base, −1 worse, 0 the same when both are rounded. `less`: the smaller is the better."""
    difference = round(row, decimals) - round(base, decimals)
    sign = (difference > 0) - (difference < 0)
    return -sign if less else sign


@dataclass(frozen=True)
class Direction:
    """Which way one row moved one score, here and there. Where the paper's is none, there is none to agree with."""

    row: str
    score: str
    ours: int
    paper: int
    change: float

    @property
    def counts(self) -> bool:
        return self.paper != 0

    @property
    def agrees(self) -> bool:
        return self.ours == self.paper

    @property
    def sentence(self) -> str:
        change = round(self.change, 2) + 0.0  # no -0.00
        return f"{self.row}: {self.score} {WORDS[self.ours]} ({change:+.2f}), in the paper {WORDS[self.paper]}"


def directions(one: Variation, result: Result, base: Result) -> tuple[Direction, Direction]:
    """Of PPL and of BLEU, rounded as the paper prints them."""
    ppl = direction(result.dev_perplexity, base.dev_perplexity, less=True, decimals=2)
    bleu = direction(result.dev_bleu, base.dev_bleu, less=False, decimals=1)
    ppl_there = direction(one.ppl, BASE_PPL, less=True, decimals=2)
    bleu_there = direction(one.bleu, BASE_BLEU, less=False, decimals=1)
    return (
        Direction(result.name, "PPL", ppl, ppl_there, result.dev_perplexity - base.dev_perplexity),
        Direction(result.name, "BLEU", bleu, bleu_there, result.dev_bleu - base.dev_bleu),
    )


# ---------------------------------------------------------------- report
def report(results: Sequence[Result], _test: TestSet, plan: Plan, rows: Path) -> Report:
    found = by_name(results)
    base = found.get("base")
    trained = [(one, found[one.row.name]) for one in VARIATIONS if one.row.name in found]
    ways = [way for one, result in trained for way in directions(one, result, base)] if base else []
    contents = Contents(
        "Table 3 at our size",
        "Which choices of the Transformer matter? Each row changes one of them in the base model, by the ratio that "
        "the paper's row has to its own base.",
        findings(ways),
        (beside(trained, base), overview(results)) if base else (overview(results),),
        (*(charts(trained, base) if base else ()), learning_curves(results, rows)),
        (
            *how(plan, results),
            f"Each row is one run with one seed, so that small differences may be chance. {fairness(plan)} In group "
            "(B) the values become as narrow as the keys, which in the paper keep their width.",
        ),
    )
    return Report({**counted(ways), **row_figures(results)}, contents)


def fairness(plan: Plan) -> str:
    there = "The paper trained all rows for equally many steps, on WMT 2014"
    if plan.steps:
        return f"{there}; here too, so that a larger model had more minutes."
    return f"{there}; here they had equally many minutes, in which a larger model takes fewer steps."


def counted(ways: Sequence[Direction]) -> dict[str, float]:
    counting = [way for way in ways if way.counts]
    scores = ("PPL", "BLEU")
    agreements = {s: float(sum(way.agrees for way in counting if way.score == s)) for s in scores}
    each = {f"agreements_{score.lower()}": count for score, count in agreements.items()}
    return {"directions": float(len(counting)), "agreements": sum(agreements.values()), **each}


def findings(ways: Sequence[Direction]) -> tuple[str, ...]:
    if not ways:
        return ()
    counting = [way for way in ways if way.counts]
    agreeing = sum(way.agrees for way in counting)
    first = (
        f"{agreeing} of {len(counting)} directions are those of the paper (better or worse than base, PPL and BLEU)."
    )
    named = [f"Disagrees: {way.sentence}." for way in counting if not way.agrees]
    return (first, *named)


def beside(trained: Sequence[tuple[Variation, Result]], base: Result) -> Table:
    heads = ("", "PPL", "paper PPL", "same way", "BLEU", "paper BLEU", "same way", "parameters")
    rows = [base_cells(base)]
    for one, result in trained:
        ppl, bleu = (mark(way) for way in directions(one, result, base))
        scores = (
            f"{result.dev_perplexity:.2f}",
            f"{one.ppl:.2f}",
            ppl,
            f"{result.dev_bleu:.1f}",
            f"{one.bleu:.1f}",
            bleu,
        )
        rows.append((f"({one.group}) {one.said}", *scores, f"{result.parameters / 1e6:.2f} M"))
    note = "Dev set. ✓ moves away from base the way the paper's row does, ✗ does not, · has no direction there."
    return Table("Ours beside the published", heads, tuple(rows), note)


def base_cells(base: Result) -> tuple[str, ...]:
    ours = f"{base.dev_perplexity:.2f}", f"{base.dev_bleu:.1f}"
    return ("base", ours[0], f"{BASE_PPL}", "", ours[1], f"{BASE_BLEU}", "", f"{base.parameters / 1e6:.2f} M")


def mark(way: Direction) -> str:
    return "·" if not way.counts else "✓" if way.agrees else "✗"


def charts(trained: Sequence[tuple[Variation, Result]], base: Result) -> list[Figure]:
    """For every knob that was turned: how PPL and BLEU move away from base, ours and the paper's on one scale."""
    found = []
    for knob in PAPER:
        turned = [(one, result) for one, result in trained if one.knob == knob]
        if not turned:
            continue
        x_name = knob if knob in TAKEN else f"{knob}, as a multiple of base"
        ppl_here = [(x(one), 100 * (r.dev_perplexity / base.dev_perplexity - 1)) for one, r in turned]
        ppl_there = [(x(one), 100 * (one.ppl / BASE_PPL - 1)) for one, _ in turned]
        bleu_here = [(x(one), r.dev_bleu - base.dev_bleu) for one, r in turned]
        bleu_there = [(x(one), one.bleu - BASE_BLEU) for one, _ in turned]
        found.append(moved(f"{knob}: PPL, % above base", knob, ppl_here, ppl_there, x_name))
        found.append(moved(f"{knob}: BLEU above base", knob, bleu_here, bleu_there, x_name))
    return found


def x(one: Variation) -> float:
    return one.value if one.knob in TAKEN else one.value / PAPER[one.knob]


def moved(
    title: str,
    knob: str,
    ours: Sequence[tuple[float, float]],
    paper: Sequence[tuple[float, float]],
    x_name: str,
) -> Figure:
    base = (PAPER[knob] if knob in TAKEN else 1.0, 0.0)

    def line(name: str, places: Sequence[tuple[float, float]]) -> Series:
        return Series(name, tuple(Point(x, y, f"{name} · {x:.3g} · {y:+.2f}") for x, y in sorted([*places, base])))

    return Figure(title, (line("ours", ours), line("paper", paper)), x_name)
