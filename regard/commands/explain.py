"""`regard explain`: what a model looked at, and what it expected, while it read or wrote a text."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rich.console import Console

from regard.commands.colours import colour_of
from regard.commands.streams import input_lines
from regard.commands.wrapping import labelled
from regard.errors import DecodingError
from regard.explainer import Asked, Explainer, load_explainer
from regard.explaining.explanation import Explanation, Kind
from regard.explaining.heatmap import Colour, display_width, labels, printable, svg, terminal
from regard.explaining.view import View, Which, by_words, view
from regard.files import write_atomically

SHOWN = 3  # alternatives of a token in the terminal


@dataclass(frozen=True)
class ExplainRequest:
    """What a user asks of `regard explain`."""

    text: str | None = None  # none: the lines of stdin
    target: str | None = None
    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None
    words: bool = False
    n_best: int = 1
    alternatives: int = 5
    svg: Path | None = None
    as_json: bool = False

    @property
    def asked(self) -> Asked:
        return Asked(self.target, self.n_best, self.alternatives)

    @property
    def which(self) -> Which:
        return Which(self.kind, self.layer, self.head)

    @property
    def drawn(self) -> bool:
        """Somebody will see a map."""
        return self.svg is not None or not self.as_json


def explain_texts(model: Path, request: ExplainRequest) -> None:
    """Writes the explanations of a text, or of each line of stdin: for people, or one JSON object a line."""
    refuse_unheard(request)
    colour = colour_of(Console())
    for place, explanation in enumerate(explanations(load_explainer(model), request)):
        seen = chosen(explanation, request) if request.drawn else None
        if seen and request.svg:
            write_atomically(request.svg, svg(seen.weights, seen.columns, seen.rows) + "\n")
        if seen and not request.as_json:
            shown = "\n".join(described(explanation, seen, colour))
            sys.stdout.write(f"\n\n{shown}\n" if place else f"{shown}\n")
        else:
            sys.stdout.write(explanation.to_json() + "\n")
        sys.stdout.flush()


def refuse_unheard(request: ExplainRequest) -> None:
    """An option that would change nothing is a mistake, and so are two pictures for one file."""
    if request.target is not None and request.n_best > 1:
        raise DecodingError(f"--n-best {request.n_best}: there is one --target; leave one of the two out")
    if request.svg is not None and request.svg.suffix.lower() != ".svg":
        raise DecodingError(f"--svg {request.svg}: the picture is an SVG file; let its name end in .svg")
    if request.svg is not None and (request.text is None or request.n_best > 1):
        raise DecodingError("--svg: draws one map; give one TEXT, and no --n-best")
    if not request.drawn:
        for name in ("kind", "layer", "head", "words"):
            if getattr(request, name):
                raise DecodingError(
                    f"--{name}: chooses a map to draw, and --json gives them all; leave one of them out"
                )


def texts(request: ExplainRequest) -> Iterator[str]:
    """The text, or each line of stdin; there must be one."""
    if request.text is not None:
        yield request.text
        return
    lines = input_lines(None)
    first = next(lines, None)
    if first is None:
        raise DecodingError("stdin: found no text; give one as TEXT, or one a line")
    yield from chain([first], lines)


def explanations(explainer: Explainer, request: ExplainRequest) -> Iterator[Explanation]:
    """Those of each text in turn; a mistake in one of several texts is named by its line."""
    for number, text in enumerate(texts(request), start=1):
        try:
            yield from explainer.explain(text, request.asked)
        except DecodingError as error:
            if request.text is not None:
                raise
            raise DecodingError(f"stdin, line {number}: {error}") from None


def chosen(explanation: Explanation, request: ExplainRequest) -> View:
    seen = view(explanation, request.which)
    return by_words(explanation, seen) if request.words else seen


# ---------------------------------------------------------------- for people
def described(explanation: Explanation, seen: View, colour: Colour) -> Iterator[str]:
    """Texts, the map, every token with what the model expected, and what is known of the heads."""
    if explanation.source:
        yield labelled("source", explanation.source.text, room=8)
    if explanation.target:
        yield labelled("output" if explanation.source else "text", explanation.target.text, room=8)
        yield f"log p   {explanation.log_probability:.3f}, score {explanation.score:.3f}"
    yield f"\n{seen.title}: rows look at columns"
    yield terminal(seen.weights, seen.columns, seen.rows, colour)
    if explanation.target:
        yield ""
        yield from expected(explanation)
    habits = known_heads(explanation)
    if habits:
        yield "\n" + labelled("heads", "; ".join(habits), room=8)


def expected(explanation: Explanation) -> Iterator[str]:
    """A line for each token: its probability, then the likeliest others."""
    tokens = explanation.target.tokens if explanation.target else ()
    names = labels([token.text for token in tokens])
    room = max(map(display_width, names), default=0)
    for name, token, step in zip(names, tokens, explanation.steps, strict=True):
        others = [one for one in step.alternatives if one.id != token.id][:SHOWN]
        shown = "  ".join(f"{printable(one.text)} {one.probability:.2f}" for one in others)
        yield f"{' ' * (room - display_width(name))}{name}  {step.probability:.2f}   {shown}".rstrip()


def known_heads(explanation: Explanation) -> list[str]:
    """The heads that have a role: "encoder 1.3 previous" is the third head of the first layer."""
    return [
        f"{block.kind} {block.layer}.{block.head} {' and '.join(block.roles)}"
        for block in explanation.attention
        if block.roles
    ]
