"""The bottleneck: what is lost in long sentences when a decoder knows no more of them than one last state."""

from collections.abc import Sequence
from pathlib import Path

from regard.evaluation.by_length import by_length
from regard.evaluation.scores import bleu
from regard.evaluation.significance import LUCK
from regard.evaluation.widening import chance_of_no_growth
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
WIDER = "gap_long over gap_short: p"


def thirds(sources: Sequence[str]) -> list[list[int]]:
    """Which sentences are the third with the fewest, middle and most source words; the middle has what is left over.

    Sentences of one length stay in the order of the file.
    """
    order = sorted(range(len(sources)), key=lambda i: len(sources[i].split()))
    third = len(order) // 3
    return [order[:third], order[third : len(order) - third], order[len(order) - third :]]


def gap(better: Sequence[str], worse: Sequence[str], references: Sequence[str], inside: Sequence[int]) -> float:
    """BLEU of one minus BLEU of the other, on these sentences alone."""
    wanted = [references[i] for i in inside]
    return bleu([better[i] for i in inside], wanted).score - bleu([worse[i] for i in inside], wanted).score


def gaps(results: Sequence[Result], test: TestSet) -> dict[str, float]:
    """gap_short, gap_middle, gap_long: with attention minus without, all else equal, on each third of the test set.

    And how likely the gap is no larger on long sentences than on short ones.
    """
    found = by_name(results)
    if WITH not in found or WITHOUT not in found or len(test.sources) < len(PARTS):
        return {}
    have, lack = found[WITH].outputs, found[WITHOUT].outputs
    parts = dict(zip(PARTS, thirds(test.sources), strict=True))
    return {
        **{f"gap_{part}": gap(have, lack, test.references, inside) for part, inside in parts.items()},
        WIDER: chance_of_no_growth(lack, have, test.references, parts["short"], parts["long"]),
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
            "sentences with the fewest and the most source words. Its p: how often, with the sentences of both thirds "
            "drawn anew, the gap is no larger on the long ones (bootstrap).",
        ),
    )
    return Report({**found, **row_figures(results), **rung_figures(ladder)}, contents)


def findings(found: dict[str, float], test: TestSet) -> tuple[str, ...]:
    if not found:
        return ()
    limits = [[len(test.sources[i].split()) for i in inside] for inside in thirds(test.sources)]
    if found["gap_long"] > found["gap_short"]:
        grows = "grows"
        chance = f" (p = {found[WIDER]:.3f}{', which may be chance' if found[WIDER] >= LUCK else ''})"
    else:
        grows, chance = "does not grow", ""
    return (
        f"Attention adds {found['gap_short']:.2f} BLEU on the shortest third ({min(limits[0])} to {max(limits[0])} "
        f"words) and {found['gap_long']:.2f} on the longest ({min(limits[2])} to {max(limits[2])} words): the gap "
        f"{grows} with the length of the source{chance}.",
    )


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
