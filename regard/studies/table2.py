"""Table 2: the line-up under one budget, beside what its papers reached on WMT 2014. Vaswani et al. 2017."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from regard.explaining.chart import Point, Series
from regard.explaining.study_page import Contents, Figure, Table
from regard.recipe.lineup import LINEUP
from regard.studies.ladder import chances, ladder_of, rung, rung_figures
from regard.studies.report import Report, TestSet, how, learning_curves, overview, row_figures
from regard.studies.rows import Plan, Result, Row

LADDER = ("rnn", "bidirectional-gru", "transformer")  # each should beat the one before it
# The upper rungs first: where two rows are trained at once, what slows the machine down slows both of them.
ROWS = tuple(Row(name, name) for name in dict.fromkeys((*LADDER[1:], *LINEUP)) if name != "fast")
ORDER = "Rows are ordered by dev BLEU, differences are those of test BLEU."


@dataclass(frozen=True)
class Published:
    """BLEU on newstest2014 and training FLOPs, as Table 2 has them; none: not given there."""

    system: str
    en_de: float | None = None
    en_fr: float | None = None
    flops_de: float | None = None
    flops_fr: float | None = None

    def cells(self) -> tuple[str, ...]:
        scores = ["" if value is None else f"{value:g}" for value in (self.en_de, self.en_fr)]
        flops = ["" if value is None else f"{value:.1e}" for value in (self.flops_de, self.flops_fr)]
        return (self.system, *scores, *flops)


PUBLISHED = {
    "bytenet": Published("ByteNet", en_de=23.75),
    "deep-att": Published("Deep-Att + PosUnk", en_fr=39.2, flops_fr=1.0e20),
    "gnmt": Published("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    "convs2s": Published("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    "moe": Published("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    "transformer": Published("Transformer (base)", 27.3, 38.1, 3.3e18, 3.3e18),
}
WITHOUT_OURS = (
    Published("Deep-Att + PosUnk ensemble", en_fr=40.4, flops_fr=8.0e20),
    Published("GNMT + RL ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Published("ConvS2S ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Published("Transformer (big)", 28.4, 41.8, 2.3e19, 2.3e19),
)


def ranked(results: Sequence[Result]) -> list[Result]:
    """Best first, by the dev set."""
    return sorted(results, key=lambda result: -result.dev_bleu)


def pairs_of(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """(lower, upper): every row and the next better one, best first."""
    return [(lower, upper) for upper, lower in pairwise(ranked(results))]


def report(results: Sequence[Result], test: TestSet, plan: Plan, rows: Path) -> Report:
    """Rows as they come, best first, beside the published figures, with the chance of every difference."""
    pairs = {
        (lower.name, upper.name): (lower, upper) for lower, upper in pairs_of(results) + ladder_of(results, LADDER)
    }
    rungs = {names: rung(*pair, test) for names, pair in pairs.items()}
    ladder = [rungs[lower.name, upper.name] for lower, upper in ladder_of(results, LADDER)]
    contents = Contents(
        "Table 2 at our size",
        "How good is each model of the line-up after the same minutes of training? Beside it is what the systems that "
        "stood model for it reached on WMT 2014: other text, other sizes, so compare orders, not numbers.",
        tuple(f"The ladder: {one.sentence}." for one in ladder),
        (overview(ranked(results)), beside(ranked(results)), chances(list(rungs.values()), ORDER)),
        (quality_by_work(results), learning_curves(results, rows)),
        how(plan, results),
    )
    return Report(row_figures(results) | rung_figures(ladder), contents)


def beside(results: Sequence[Result]) -> Table:
    heads = ("", "our test BLEU", "our FLOPs", "published", "EN-DE", "EN-FR", "FLOPs EN-DE", "FLOPs EN-FR")
    ours = [
        (r.name, f"{r.test_bleu:.2f}", f"{r.flops:.1e}", *PUBLISHED.get(r.name, Published("")).cells()) for r in results
    ]
    others = [("(not ours)", "", "", *one.cells()) for one in WITHOUT_OURS]
    return Table(
        "Ours beside the published",
        heads,
        (*ours, *others),
        "Published: newstest2014, by their papers; their FLOPs are time × GPUs × an estimate of what each sustains.",
    )


def quality_by_work(results: Sequence[Result]) -> Figure:
    series = (
        Series(r.name, (Point(math.log10(r.flops), r.test_bleu, f"{r.name} · {r.flops:.1e} · {r.test_bleu:.2f} BLEU"),))
        for r in results
    )
    return Figure("test BLEU", tuple(series), "log₁₀ of training FLOPs")
