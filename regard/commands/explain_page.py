"""`regard explain --out`: explanations into a file, whose ending says what it is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from regard.commands.explain import ExplainRequest, chosen, explanations, refuse_unheard
from regard.errors import DecodingError
from regard.explainer import load_explainer
from regard.explaining.explain import MOST_WEIGHTS
from regard.explaining.explain_page import explanation_page
from regard.explaining.explanation import Explanation
from regard.explaining.heatmap import svg
from regard.explaining.heatmap_png import png
from regard.files import write_atomically

ENDINGS = (".html", ".svg", ".png", ".json")


def write_explanations(model: Path, request: ExplainRequest) -> None:
    """A page of all explanations; or one map as a picture, or JSON."""
    out = request.out
    assert out is not None
    refuse_misplaced(request, out)
    refuse_unheard(request)
    found = bounded(explanations(load_explainer(model), request), out)
    others = bounded(beside(found, request), out) if request.beside else []
    write_atomically(out, content(found, others, request, out.suffix.lower()))


def refuse_misplaced(request: ExplainRequest, out: Path) -> None:
    """A file of no known kind, or of one that cannot hold what is asked for."""
    ending = out.suffix.lower()
    if ending not in ENDINGS:
        raise DecodingError(
            f"--out {out}: found the ending {ending or 'of no kind'!r}, expected one of {', '.join(ENDINGS)}; "
            "choose what it is to be"
        )
    if request.as_json:
        raise DecodingError(f"--json: writes to the terminal, and --out {out} to a file; leave one of them out")
    if ending != ".html" and (request.text is None or request.n_best > 1):
        raise DecodingError(
            f"--out {out}: holds one output; give one TEXT and no --n-best, or let its name end in .html, or use --json"
        )
    if request.beside and ending != ".html":
        raise DecodingError(f"--beside: two models stand on a page; let {out} end in .html")
    if request.beside and request.n_best > 1:
        raise DecodingError(f"--beside: shows the best output of each model; leave out --n-best {request.n_best}")


def bounded(found: Iterable[Explanation], out: Path) -> list[Explanation]:
    """All of them; more than a browser can show is refused as soon as it is known."""
    kept: list[Explanation] = []
    weights = 0
    for one in found:
        weights += sum(len(row) for block in one.attention for row in block.weights)
        if weights > MOST_WEIGHTS:
            raise DecodingError(
                f"--out {out}: more than {MOST_WEIGHTS:,} attention weights after {len(kept)} texts; give fewer"
            )
        kept.append(one)
    return kept


def beside(found: Sequence[Explanation], request: ExplainRequest) -> Iterator[Explanation]:
    """What the other model makes of the same texts."""
    assert request.beside is not None
    other = load_explainer(request.beside)
    for one in found:
        side = one.source or one.target
        assert side is not None
        try:
            yield from explanations(other, replace(request, text=side.text))
        except DecodingError as error:
            raise DecodingError(f"--beside {request.beside}: {error}") from None


def content(
    found: Sequence[Explanation], others: Sequence[Explanation], request: ExplainRequest, ending: str
) -> str | bytes:
    if ending == ".html":
        return explanation_page(found, others)
    if ending == ".json":
        return found[0].to_json() + "\n"
    seen = chosen(found[0], request)[0]
    if ending == ".png":
        return png(seen.weights, seen.columns, seen.rows)
    return svg(seen.weights, seen.columns, seen.rows) + "\n"
