"""One HTML file that tells what a model is, how it learned and what it looks at; it opens without a network."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from regard.evaluation.alignment import Links
from regard.explaining.alignment import strongest
from regard.explaining.chart import Point, Series, chart
from regard.explaining.document import document, section
from regard.explaining.film import Frame, Still, View, views
from regard.explaining.heatmap import cells, labels, outlines, peak, svg
from regard.explaining.markup import text
from regard.explaining.record import Attention
from regard.explaining.samples import Moment, samples


@dataclass(frozen=True)
class Score:
    """`note` says how to reproduce the figure (a signature)."""

    name: str
    value: float
    note: str = ""


@dataclass(frozen=True)
class CurvePoint:
    """One moment of training. `scores["loss"]` is drawn beside the training loss, every other score for itself."""

    step: int
    minutes: float
    loss: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    source: str
    expected: str
    got: str
    ok: bool


@dataclass(frozen=True)
class Picture:
    """Maps over the same tokens: keys are the columns, queries the rows, one grid place for each layer and head.

    For cross-attention the columns are the source tokens as the encoder read them and the rows are what each step
    wrote: the output tokens and the end token.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    attentions: tuple[Attention, ...]


@dataclass(frozen=True)
class Contents:
    """What the page shows, from top to bottom; an empty part leaves no trace.

    `commands` maps what a command does to how it is typed.
    """

    title: str
    summary: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    scores: Sequence[Score] = ()
    curve: Sequence[CurvePoint] = ()
    examples: Sequence[Example] = ()
    pictures: Sequence[Picture] = ()
    film: Sequence[Frame] = ()
    samples: Sequence[Moment] = ()
    commands: Mapping[str, str] = field(default_factory=dict)


def report(contents: Contents) -> str:
    """The whole page."""
    parts = [
        header(contents),
        section("Scores", scores(contents.scores)),
        section("Learning", curves(contents.curve)),
        section("Examples", examples(contents.examples)),
        section("Attention", "".join(picture(one) for one in contents.pictures)),
        section("Samples", samples(contents.samples)),
        section("Attention in the course of training", film(contents.film)),
        section("Try it", commands(contents.commands)),
    ]
    return document(contents.title, "".join(parts))


def header(contents: Contents) -> str:
    summary = f"<p>{text(contents.summary)}</p>" if contents.summary else ""
    facts = "".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in contents.facts.items())
    return f"<header><h1>{text(contents.title)}</h1>{summary}{f'<dl>{facts}</dl>' if facts else ''}</header>\n"


def scores(values: Sequence[Score]) -> str:
    tiles = [
        f'<div class="tile"><b>{figure(score.value)}</b><span>{text(score.name)}</span>'
        f"{f'<code>{text(score.note)}</code>' if score.note else ''}</div>"
        for score in values
    ]
    return f'<div class="tiles">{"".join(tiles)}</div>' if tiles else ""


def figure(value: float) -> str:
    """Two decimals below 1,000; a value that is not finite is not a figure."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}".removesuffix(".00")


# ---------------------------------------------------------------- learning curves
def curves(points: Sequence[CurvePoint]) -> str:
    """The loss first, training and validation together; then one chart for each other score."""
    if not points:
        return ""
    names = list(dict.fromkeys(name for point in points for name in point.scores))
    training = trace("training", points, [point.loss for point in points])
    loss = [training] if training.points else []
    if "loss" in names:
        loss.append(trace("validation", points, [point.scores.get("loss") for point in points]))
    charts = [chart("loss", loss, "step")] if loss else []
    for name in names:
        if name != "loss":
            shown = name.replace("_", " ")
            line = trace(shown, points, [point.scores.get(name) for point in points])
            charts.append(chart(f"validation {shown}", [line], "step"))
    return f'<div class="charts">{"".join(charts)}</div>'


def trace(name: str, points: Iterable[CurvePoint], values: Iterable[float | None]) -> Series:
    return Series(
        name,
        tuple(
            Point(float(point.step), value, f"step {point.step:,} · {point.minutes:.1f} min · {name} {value:.4g}")
            for point, value in zip(points, values, strict=True)
            if value is not None
        ),
    )


# ---------------------------------------------------------------- examples and commands
def examples(rows: Sequence[Example]) -> str:
    if not rows:
        return ""
    lines = []
    for row in rows:
        fields = (("source", row.source), ("expected", row.expected), ("got", row.got))
        cells_ = "".join(f'<td data-name="{name}" dir="auto">{text(value)}</td>' for name, value in fields)
        mark = '<td class="ok">✓ right</td>' if row.ok else '<td class="bad">✗ wrong</td>'
        lines.append(f"<tr>{cells_}{mark}</tr>")
    heads = "<tr><th>source</th><th>expected</th><th>got</th><th></th></tr>"
    return f"<table><thead>{heads}</thead><tbody>{''.join(lines)}</tbody></table>"


def commands(lines: Mapping[str, str]) -> str:
    return "".join(f"<p>{text(what)}</p><pre>{text(command)}</pre>" for what, command in lines.items())


# ---------------------------------------------------------------- attention
def picture(one: Picture) -> str:
    """The mean over all layers and heads, large; beside it every head, small: a click opens it large."""
    mean = torch.cat([attention.weights for attention in one.attentions]).mean(0)
    everything = thumbnail(mean, "mean of all heads", "all", pressed=True)
    rows = [grid_row(attention, i) for i, attention in enumerate(one.attentions)]
    single = sum(len(attention.weights) for attention in one.attentions) == 1
    return (
        f'<article class="maps" data-columns="{names(one.columns)}" data-rows="{names(one.rows)}">'
        f"<h3><bdi>{text(one.title)}</bdi></h3>"
        f'<div class="both"><figure class="large">{svg(mean, one.columns, one.rows)}'
        f'<figcaption><b class="which">{"attention" if single else "mean of all heads"}</b> '
        f'<output class="value">strongest: {peak(mean):.2f}</output></figcaption></figure>'
        f"{thumbnail_data(mean) if single else grid(everything, rows)}</div></article>"
    )


def grid(everything: str, rows: Sequence[str]) -> str:
    return f'<div class="heads"><p>mean</p><div>{everything}</div>{"".join(rows)}</div>'


def grid_row(attention: Attention, i: int) -> str:
    """One layer: the mean of its heads, then each head. Layers and heads count from 1, as people do."""
    layer = f"layer {i + 1}"
    buttons = [thumbnail(attention.weights.mean(0), f"{layer}, mean", "mean")] if len(attention.weights) > 1 else []
    buttons += [thumbnail(w, f"{layer}, head {h + 1}", f"head {h + 1}") for h, w in enumerate(attention.weights)]
    return f"<p>{layer}</p><div>{''.join(buttons)}</div>"


def thumbnail(
    weights: Float[Tensor, "q k"], name: str, short: str, *, pressed: bool = False, links: Links = frozenset()
) -> str:
    q, k = weights.shape
    return (
        f'<button type="button" aria-label="{text(name)}" aria-pressed="{str(pressed).lower()}" '
        f'data-peak="{peak(weights):.2f}" data-weights="{thousandths(weights)}">'
        f'<svg viewBox="0 0 {k} {q}" preserveAspectRatio="none" aria-hidden="true">{cells(weights)}{outlines(links)}'
        f"</svg><span>{text(short)}</span></button>"
    )


def thumbnail_data(weights: Float[Tensor, "q k"]) -> str:
    """The weights of an only map, for the pointer; there is nothing to choose from."""
    return f'<i hidden data-weights="{thousandths(weights)}"></i>'


def thousandths(weights: Float[Tensor, "q k"]) -> str:
    """Row by row, 0.057 → 57 and 0 → nothing: what the page shows under the pointer."""
    return ",".join(str(value or "") for value in (weights * 1000).round().int().flatten().tolist())


def names(tokens: Sequence[str]) -> str:
    """Labels in one attribute; a label holds no tab."""
    return text("\t".join(labels(tokens)))


# ---------------------------------------------------------------- in the course of training
def film(frames: Sequence[Frame]) -> str:
    """How far the output and its source agree, by step; then the strip of each sentence."""
    if len(frames) < 2:  # nothing to compare
        return ""
    seen = views(frames)
    course = [
        Point(float(one.step), one.agreement, f"step {one.step:,} · layer {one.layer} · agreement {one.agreement:.3f}")
        for one in seen
    ]
    strips = "".join(strip(seen, still, i) for i, still in enumerate(frames[-1].pictures))
    single = len({one.layer for one in seen}) == 1
    layer = (
        f"layer {seen[-1].layer}, which aligns best at the last step" if single else "the layer that aligned best then"
    )
    return (
        "<p>Sentences that were not learned from, with their reference as the output; the mean of the heads of "
        f"{layer}. Outlined, and orange in the small maps: the alignment, the source token to which each output token "
        "gives most. Agreement: how many of the output and source tokens choose each other, by giving and by getting "
        "most; all of them would be 1.</p>"
        f'<div class="charts">{chart("agreement", [Series("agreement", tuple(course))], "step")}</div>{strips}'
    )


def strip(seen: Sequence[View], still: Still, i: int) -> str:
    """One sentence: the last frame large, all of them small, a slider and a button that lets them run."""
    last, weights = seen[-1], seen[-1].maps[i]
    links = [strongest(one.maps[i], 0.0) for one in seen]
    small = "".join(
        thumbnail(one.maps[i], named(one), f"{one.step:,}", pressed=one is last, links=marked)
        for one, marked in zip(seen, links, strict=True)
    )
    return (
        f'<article class="maps film" data-columns="{names(still.source)}" data-rows="{names(still.target)}">'
        f"<h3>sentence {i + 1}</h3>"
        f'<div class="both"><figure class="large">{svg(weights, still.source, still.target, links=links[-1])}'
        f'<figcaption><b class="which">{named(last)}</b> '
        f'<output class="value">strongest: {peak(weights):.2f}</output></figcaption></figure>'
        f'<div class="heads"><div class="reel"><button type="button" class="play">play</button>'
        f'<input type="range" min="0" max="{len(seen) - 1}" value="{len(seen) - 1}" aria-label="frame"></div>'
        f"<div>{small}</div></div></div></article>"
    )


def named(one: View) -> str:
    return f"step {one.step:,}, layer {one.layer}"
