"""The bottleneck: what is lost in long sentences when a decoder knows no more of them than one last state."""

from collections.abc import Sequence
from pathlib import Path

from regard.evaluation.by_length import by_length
from regard.evaluation.scores import bleu
from regard.evaluation.significance import LUCK
from regard.evaluation.widening import DRAWS, chance_of_no_growth, lead, lost
from regard.explaining.chart import Point, Series
from regard.explaining.study_page import Contents, Figure, Table
from regard.studies.ladder import chances, ladder_of, rung, rung_figures
from regard.studies.report import Report, TestSet, by_name, how, learning_curves, overview, row_figures
from regard.studies.rows import Plan, Result, Row

WITHOUT, WITH = "gru-without-attention", "bidirectional-gru"
ROWS = (
    Row("rnn", "rnn"),
    Row(WITHOUT, "bidirectional-gru", ("model.attention=none", "model.input_feeding=false")),
    Row(WITH, "bidirectional-gru"),
    Row("transformer", "transformer"),
)
LADDER = (WITHOUT, WITH, "transformer")
BOUNDS = (7, 9, 11, 13, 15, 18, 22)
PARTS = ("short", "middle", "long")
WIDER, WORSE = "gap_long over gap_short: p", "lost_long over lost_short: p"


def thirds(sources: Sequence[str]) -> list[list[int]]:
    """Which sentences are the third with the fewest, middle and most source words; the middle has what is left over.

    Sentences of one length stay in the order of the file.
    """
    order = sorted(range(len(sources)), key=lambda i: len(sources[i].split()))
    third = len(order) // 3
    return [order[:third], order[third : len(order) - third], order[len(order) - third :]]


def score(outputs: Sequence[str], references: Sequence[str], inside: Sequence[int]) -> float:
    """BLEU of these sentences alone."""
    return bleu([outputs[i] for i in inside], [references[i] for i in inside]).score


def gaps(results: Sequence[Result], test: TestSet) -> dict[str, float]:
    """gap_short, gap_middle, gap_long: with attention minus without, all else equal, on each third of the test set.

    lost_short, lost_middle, lost_long: the same as a share of what there is with attention. And how likely each is no
    larger on long sentences than on short ones.
    """
    found = by_name(results)
    if WITH not in found or WITHOUT not in found or len(test.sources) < len(PARTS):
        return {}
    have, lack = found[WITH].outputs, found[WITHOUT].outputs
    parts = dict(zip(PARTS, thirds(test.sources), strict=True))
    scores = {part: [score(one, test.references, inside) for one in (lack, have)] for part, inside in parts.items()}
    ends = parts["short"], parts["long"]
    return {
        **{f"gap_{part}": lead(*pair) for part, pair in scores.items()},
        WIDER: chance_of_no_growth(lack, have, test.references, *ends),
        **{f"lost_{part}": lost(*pair) for part, pair in scores.items()},
        WORSE: chance_of_no_growth(lack, have, test.references, *ends, measure=lost),
    }


def report(results: Sequence[Result], test: TestSet, plan: Plan, rows: Path) -> Report:
    found = gaps(results, test)
    ladder = [rung(*pair, test) for pair in ladder_of(results, LADDER)]
    contents = Contents(
        "The bottleneck",
        "A decoder without attention knows the source by one vector. How much worse is that the longer the source?",
        (*findings(found, test), *(f"The ladder: {one.sentence}." for one in ladder)),
        (overview(results), chances(ladder, "Differences are those of test BLEU."), lengths_table(results, test)),
        (length_chart(results, test), learning_curves(results, rows)),
        (
            *how(plan, results),
            f"The gap is BLEU of {WITH} minus BLEU of {WITHOUT}: the same bidirectional encoder and the same cells, "
            "with additive attention and input feeding, and without. Short and long are the thirds of the test "
            "sentences with the fewest and the most source words. What is lost is the gap as a share of the BLEU with "
            "attention: long sentences are harder for every model, and a gap shrinks with the scores. Each p: how "
            "often, with the sentences of both thirds drawn anew, gap or loss is no larger on the long ones "
            "(bootstrap).",
        ),
    )
    return Report({**found, **row_figures(results), **rung_figures(ladder)}, contents)


def findings(found: dict[str, float], test: TestSet) -> tuple[str, ...]:
    if not found:
        return ()
    limits = [[len(test.sources[i].split()) for i in inside] for inside in thirds(test.sources)]
    return (
        f"Attention adds {found['gap_short']:.2f} BLEU on the shortest third ({min(limits[0])} to {max(limits[0])} "
        f"words) and {found['gap_long']:.2f} on the longest ({min(limits[2])} to {max(limits[2])} words): the gap "
        f"{growth(found, 'gap', WIDER)} with the length of the source.",
        f"Without attention {found['lost_short']:.0%} of the BLEU is lost on the shortest third, and "
        f"{found['lost_long']:.0%} on the longest: the loss {growth(found, 'lost', WORSE)} with the length.",
    )


def growth(found: dict[str, float], name: str, p: str) -> str:
    """Whether a measure is larger on long sentences, and if so, how likely by chance."""
    if found[f"{name}_long"] <= found[f"{name}_short"]:
        return "does not grow"
    chance = f"p = {found[p]:.3f}" if found[p] >= 1 / DRAWS else f"p < {1 / DRAWS:g}"
    return f"grows ({chance}{', which may be chance' if found[p] >= LUCK else ''})"


def lengths_table(results: Sequence[Result], test: TestSet) -> Table:
    """BLEU of every row in every bucket of source words."""
    columns = {r.name: by_length(test.sources, r.outputs, test.references, BOUNDS) for r in results}
    buckets = zip(*columns.values(), strict=True)
    rows = tuple((row[0].name, f"{row[0].sentences:,}", *(f"{one.bleu:.1f}" for one in row)) for row in buckets)
    return Table("BLEU by source words", ("source words", "sentences", *columns), rows)


def length_chart(results: Sequence[Result], test: TestSet) -> Figure:
    words = [len(source.split()) for source in test.sources]
    series = []
    for result in results:
        points = []
        for bucket in by_length(test.sources, result.outputs, test.references, BOUNDS):
            inside = [n for n in words if bucket.shortest <= n and (bucket.longest is None or n <= bucket.longest)]
            note = f"{result.name} · {bucket.name} words · {bucket.sentences} sentences · {bucket.bleu:.1f} BLEU"
            points.append(Point(sum(inside) / len(inside), bucket.bleu, note))
        series.append(Series(result.name, tuple(points)))
    return Figure("test BLEU", tuple(series), "source words")
