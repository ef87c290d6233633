"""Two systems on one page: scores and their significance, quality by length, and the sentences that differ most."""

from collections.abc import Sequence

from regard.evaluation.compare import Comparison, Contest, Runs, SideBySide, word_differences
from regard.evaluation.significance import LUCK, Difference, percent, verdict
from regard.explaining.chart import Point, Series, chart
from regard.explaining.document import document, section
from regard.explaining.markup import text

STYLES = ("page.css", "compare.css")


def comparison_page(found: Comparison, names: tuple[str, str]) -> str:
    """The page; `names` are what people call A and B."""
    parts = [
        header(found, names),
        section("Scores", scores(found.differences)),
        section("By source length", lengths(found.contests)),
        section("Where B is furthest ahead", sentences(found.for_b)),
        section("Where A is furthest ahead", sentences(found.for_a)),
        section("How it was measured", method(found)),
    ]
    return document(f"{names[0]} and {names[1]}", "".join(parts), STYLES)


def header(found: Comparison, names: tuple[str, str]) -> str:
    legend = "".join(
        f'<div><dt><span class="letter s{i}">{letter}</span></dt><dd><bdi>{text(name)}</bdi></dd></div>'
        for i, (letter, name) in enumerate(zip("AB", names, strict=True))
    )
    same = f"{found.identical:,} of them with the same output" if found.identical else "all with different outputs"
    return (
        f'<header><h1>Which is better?</h1><dl class="systems">{legend}</dl>'
        f'<p class="verdict">{text(verdict(found.differences[0]))}</p>'
        f"<p>{found.sentences:,} sentences, {same}.</p></header>\n"
    )


# ---------------------------------------------------------------- scores
def scores(differences: Sequence[Difference]) -> str:
    heads = ("", "A", "B", "B − A", "p, bootstrap", "p, randomisation")
    rows = "".join(score_row(one) for one in differences)
    return (
        f'<table class="figures"><thead><tr>{"".join(f"<th>{head}</th>" for head in heads)}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        "<p>± holds 95 % of the resampled test sets. p: how often a difference this large would come up if A and B "
        f"were equally good; from {percent(LUCK)} on it may well be chance. The bootstrap's is too small where "
        "A and B are close, so what is said in words goes by randomisation. TER counts errors: less is better.</p>"
    )


def score_row(one: Difference) -> str:
    marks = {True: ' class="lead"', False: ""}
    cells = (
        ("A", f"{one.a.score:.2f}{margin(one.a.margin)}", one.gain < 0),
        ("B", f"{one.b.score:.2f}{margin(one.b.margin)}", one.gain > 0),
        ("B − A", f"{signed(one.difference, 2)}{margin(one.margin)}", False),
        ("p, bootstrap", f"{one.bootstrap.p:.4f}", False),
        ("p, randomisation", f"{one.randomisation.p:.4f}", False),
    )
    filled = "".join(f'<td data-name="{name}"{marks[lead]}>{value}</td>' for name, value, lead in cells)
    return f"<tr><th scope=row>{one.metric}</th>{filled}</tr>"


def signed(value: float, decimals: int) -> str:
    return f"{value:+.{decimals}f}".replace("-", "−")


def margin(value: float) -> str:
    return f' <span class="margin">± {value:.2f}</span>'


# ---------------------------------------------------------------- by length
def lengths(contests: Sequence[Contest]) -> str:
    """BLEU of both by length, and a bar of wins, ties and losses for each bucket."""
    lines = [
        Series(letter, tuple(point(letter, contest, i) for contest in contests)) for i, letter in enumerate(("A", "B"))
    ]
    drawn = chart("BLEU", lines, "source words")
    bars = "".join(bar(contest) for contest in contests)
    key = "".join(f'<span class="box {kind}">{name}</span>' for kind, name in KINDS)
    return (
        f'<div class="charts">{drawn}<figure class="chart wins"><figcaption>sentences by whose chrF is higher {key}'
        f"</figcaption>{bars}</figure></div>"
    )


KINDS = (("a", "A"), ("tie", "equal"), ("b", "B"))


def point(letter: str, contest: Contest, i: int) -> Point:
    bleu = (contest.a, contest.b)[i].bleu
    note = f"{contest.name} words · {contest.a.sentences:,} sentences · {letter} {bleu:.1f} BLEU"
    return Point(contest.mean_words, bleu, note)


def bar(contest: Contest) -> str:
    """One line of the figure: shares as widths, counts as text."""
    counts = (contest.wins_a, contest.ties, contest.wins_b)
    pieces = "".join(
        f'<i class="{kind}" style="flex-grow:{count}"><span class="said">{name} </span>{count}</i>'
        for (kind, name), count in zip(KINDS, counts, strict=True)
        if count
    )
    return f'<div class="contest"><b>{contest.name}</b><div class="bar">{pieces}</div></div>'


# ---------------------------------------------------------------- sentences
def sentences(rows: Sequence[SideBySide]) -> str:
    return "".join(sentence(row) for row in rows)


def sentence(row: SideBySide) -> str:
    a, b = word_differences(row.a, row.b)
    lines = (
        ("", "source", text(row.source)),
        ("", "reference", text(row.reference)),
        ("s0", f"A · {row.chrf_a:.0f}", marked(a)),
        ("s1", f"B · {row.chrf_b:.0f}", marked(b)),
    )
    body = "".join(f'<dt class="{kind}">{name}</dt><dd dir="auto">{said}</dd>' for kind, name, said in lines)
    return f'<article class="sentence"><h3>line {row.line:,}, chrF {signed(row.gain, 0)}</h3><dl>{body}</dl></article>'


def marked(runs: Runs) -> str:
    """The text with the words underlined that the other output has not."""
    shown = " ".join(f"<mark>{text(words)}</mark>" if differs else text(words) for words, differs in runs)
    return shown or '<span class="none">nothing</span>'


def method(found: Comparison) -> str:
    signatures = ((one.signature, one.bootstrap.signature, one.randomisation.signature) for one in found.differences)
    lines = "\n".join(
        f"{one.metric:<5}{signature}"
        for one, group in zip(found.differences, signatures, strict=True)
        for signature in group
    )
    return (
        "<p>Scores and both tests are sacreBLEU's: paired bootstrap (bs: resamples) and paired approximate "
        f"randomisation (ar: trials), seed {found.seed}. Sentences are compared by their chrF.</p>"
        f"<pre>{text(lines)}</pre>"
    )
