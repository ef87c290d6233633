"""`regard compare`: two systems on one test set, in the terminal, as JSON and as a page."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from regard.commands.progress import counted
from regard.commands.streams import refuse_loss, to_json
from regard.commands.wrapping import labelled
from regard.data.readers import read_lines, read_parallel
from regard.errors import DataError
from regard.evaluation.compare import Comparison, Contest, Runs, SideBySide, Texts, compare, word_differences
from regard.evaluation.significance import METRICS, RESAMPLES, TRIALS, Difference, Metric, verdict
from regard.explaining.compare_page import comparison_page
from regard.files import write_atomically


@dataclass(frozen=True)
class CompareRequest:
    """What a user asks of `regard compare`. No metric: all of them; no beam: that of each model's recipe."""

    source: Path
    target: Path
    out: Path | None = None
    metrics: tuple[Metric, ...] = ()
    examples: int = 5
    beam: int | None = None
    as_json: bool = False


def compare_systems(a: Path, b: Path, request: CompareRequest) -> None:
    """Outputs, scores, tests; then the page, and either the table or the JSON."""
    if a.resolve() == b.resolve():
        raise DataError(f"{a}: given as A and as B; name two different systems")
    if request.beam and not (a.is_dir() or b.is_dir()):
        raise DataError(f"--beam {request.beam}: A and B are files of outputs, and nothing is searched; leave it out")
    refuse_loss(request.out, a, b, request.source, request.target)
    pairs = list(read_parallel(request.source, request.target))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    outputs = [outputs_of(system, sources, request) for system in (a, b)]
    metrics = tuple(dict.fromkeys(request.metrics)) or METRICS
    found = compare(Texts(sources, references, *outputs), metrics, request.examples)
    if request.out:
        write_atomically(request.out, comparison_page(found, (str(a), str(b))))
    if request.as_json:
        sys.stdout.write(to_json({"a": str(a), "b": str(b), **found.to_json()}) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in described(found, (a, b))))


def outputs_of(system: Path, sources: Sequence[str], request: CompareRequest) -> list[str]:
    """What a model directory makes of the sources, or the lines of a file of outputs."""
    if system.is_dir():
        return translations(system, sources, request.beam)
    lines = list(read_lines(system))
    if len(lines) != len(sources):
        raise DataError(
            f"{system} has {len(lines)} lines, {request.source} has {len(sources)}; give one output for each source"
        )
    return lines


def translations(model: Path, sources: Sequence[str], beam: int | None) -> list[str]:
    """As `regard evaluate` would translate, with the model's own engine and search."""
    # torch takes a second to import, which whoever compares two files need not wait for.
    from regard.commands.translate import TranslateRequest, speaking
    from regard.engine import load
    from regard.exporting.ctranslate2 import is_exported

    request = TranslateRequest(beam=beam, engine="ctranslate2" if is_exported(model) else "torch")
    with speaking(model, request, iter(sources), lambda: load(model, request.engine)) as parts:
        return list(counted(chain.from_iterable(parts), len(sources)))


# ---------------------------------------------------------------- terminal
def described(found: Comparison, systems: tuple[Path, Path]) -> Iterator[str]:
    """The comparison for people, at most 80 columns wide."""
    for letter, system in zip("AB", systems, strict=True):
        yield f"{letter}  {system}"
    yield f"{found.sentences:,} sentences, {found.identical:,} with the same output"
    yield ""
    yield from score_table(found.differences)
    yield f"± and bootstrap: {RESAMPLES:,} resamples; randomisation: {TRIALS:,} trials; seed {found.seed}"
    yield ""
    yield from (labelled("", verdict(one), room=0) for one in found.differences)
    yield ""
    yield from length_table(found.contests)
    for letter, rows in (("B", found.for_b), ("A", found.for_a)):
        if rows:
            yield from ("", f"Where {letter} is furthest ahead, words that differ in [ ]")
            yield from (line for row in rows for line in sentence(row))
    yield ""
    for one in found.differences:
        yield f"{one.metric:<6}{one.signature}"


def score_table(differences: Sequence[Difference]) -> Iterator[str]:
    yield f"{'':<5}{'A':>14}{'B':>16}{'B − A':>16}{'p bootstrap':>15}{'p random.':>12}"
    for one in differences:
        a, b = (f"{each.score:.2f} ± {each.margin:.2f}" for each in (one.a, one.b))
        change = f"{one.difference:+.2f} ± {one.margin:.2f}"
        yield f"{one.metric:<5}{a:>14}{b:>16}{change:>16}{one.bootstrap.p:>15.4f}{one.randomisation.p:>12.4f}"


def length_table(contests: Sequence[Contest]) -> Iterator[str]:
    names = (f"{name:>10}" for name in ("sentences", "BLEU A", "BLEU B", "A wins", "equal", "B wins"))
    yield f"{'source words':<14}{''.join(names)}"
    for one in contests:
        scores = f"{one.a.sentences:>10,}{one.a.bleu:>10.1f}{one.b.bleu:>10.1f}"
        yield f"{one.name:<14}{scores}{one.wins_a:>10,}{one.ties:>10,}{one.wins_b:>10,}"


def sentence(row: SideBySide) -> Iterator[str]:
    a, b = word_differences(row.a, row.b)
    yield ""
    yield f"line {row.line:,}, chrF {row.chrf_a:.0f} → {row.chrf_b:.0f}"
    for label, said in (
        ("source", row.source),
        ("ref.", row.reference),
        ("A", marked(a)),
        ("B", marked(b)),
    ):
        yield labelled(f"  {label}", said, room=10)


def marked(runs: Runs) -> str:
    """The words that the other output has not, in brackets."""
    return " ".join(f"[{words}]" if differs else words for words, differs in runs)
