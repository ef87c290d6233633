"""`regard explain`: what a model looked at, and what it expected, while it read or wrote a text."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from rich.console import Console

from regard.commands.colours import colour_of
from regard.commands.dependence import MapWishes, faithfulness_table, refuse_unheard_maps, worries
from regard.commands.progress import say
from regard.commands.rising import watched
from regard.commands.streams import input_lines
from regard.commands.wrapping import labelled
from regard.errors import DecodingError
from regard.explainer import Asked, Explainer, load_explainer
from regard.explaining.dependence import last
from regard.explaining.explanation import Explanation, Kind, Method
from regard.explaining.heatmap import Colour, display_width, labels, printable, terminal
from regard.explaining.view import View, Which, by_words, saliency_view, view

SHOWN = 3  # alternatives of a token in the terminal
PICTURES = (".svg", ".png")  # files of one map
PAGE = ".html"
PAGE_MASKS = 300  # of RISE on a page that nobody asked it for: about half a second for a sentence


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
    maps: tuple[Method, ...] = ()
    masks: int | None = None
    faithful: bool = False
    check: bool = False
    plain: bool = False  # a page of what is asked for and no more
    out: Path | None = None  # its ending says what is written; none: the terminal
    beside: Path | None = None  # another model, for a page
    as_json: bool = False

    @property
    def asked(self) -> Asked:
        return Asked(
            target=self.target,
            n_best=self.n_best,
            alternatives=self.alternatives,
            maps=self.maps,
            masks=self.masks,
            faithful=self.faithful,
            concerns=self.check,
            watch=watched,
        )

    def asked_of(self, explainer: Explainer) -> Asked:
        """On a page that is not `plain` also RISE, if no map is named, and concerns, as far as this model has them."""
        asked = self.asked
        if not self.full:
            return asked
        if not (self.maps or self.faithful) and (explainer.mappable or self.masks):
            masks, watch = (self.masks, watched) if self.masks else (PAGE_MASKS, last)
            asked = replace(asked, maps=("rise",), masks=masks, watch=watch)
        return replace(asked, concerns=self.check or explainer.checkable)

    @property
    def full(self) -> bool:
        """A page that shows more than was asked for."""
        return self.out is not None and self.out.suffix.lower() == PAGE and not self.plain

    @property
    def which(self) -> Which:
        return Which(self.kind, self.layer, self.head)

    @property
    def drawn(self) -> bool:
        """Somebody will see one map."""
        return not self.as_json if self.out is None else self.out.suffix.lower() in PICTURES


def explain_texts(model: Path, request: ExplainRequest) -> None:
    """Writes the explanations of a text, or of each line of stdin: for people, or one JSON object a line."""
    refuse_unheard(request)
    colour = colour_of(Console())
    for place, explanation in enumerate(explanations(load_explainer(model), request)):
        seen = chosen(explanation, request) if request.drawn else []
        if seen:
            shown = "\n".join(described(explanation, seen, request, colour))
            sys.stdout.write(f"\n\n{shown}\n" if place else f"{shown}\n")
        else:
            sys.stdout.write(explanation.to_json() + "\n")
        sys.stdout.flush()


def refuse_unheard(request: ExplainRequest) -> None:
    """An option that would change nothing is a mistake."""
    if request.target is not None and request.n_best > 1:
        raise DecodingError(f"--n-best {request.n_best}: there is one --target; leave one of the two out")
    number = next((name for name in ("layer", "head") if getattr(request, name)), None)
    refuse_unheard_maps(
        MapWishes(
            maps=request.maps,
            masks=request.masks,
            faithful=request.faithful,
            full=request.full,
            kind=request.kind,
            number=number,
            pictured=request.out is not None and request.drawn,
        )
    )
    if request.beside is not None and request.out is None:
        raise DecodingError("--beside: shows two models on a page; say where with --out FILE.html")
    if request.plain and (request.out is None or request.out.suffix.lower() != PAGE):
        raise DecodingError(
            "--plain: is for a page, which shows more than is asked for; say where with --out FILE.html"
        )
    if not request.drawn:
        whole = "--json" if request.out is None else f"--out {request.out}"
        for name in ("kind", "layer", "head", "words"):
            if getattr(request, name):
                raise DecodingError(
                    f"--{name}: chooses a map to draw, and {whole} gives them all; leave one of them out"
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
            yield from explained(explainer, text, request)
        except DecodingError as error:
            if request.text is not None:
                raise
            raise DecodingError(f"stdin, line {number}: {error}") from None


def explained(explainer: Explainer, text: str, request: ExplainRequest) -> list[Explanation]:
    """What nobody asked a page for is left out, and that is said, where a text is too short or its output too long."""
    wanted = request.asked_of(explainer)
    try:
        return explainer.explain(text, wanted)
    except DecodingError as error:
        if wanted == request.asked or request.masks:
            raise
        found = explainer.explain(text, request.asked)  # a text that cannot be explained at all is refused again
        say(f"{text[:40]!r}: the page has only what was asked for; {error}")
        return found


def chosen(explanation: Explanation, request: ExplainRequest) -> list[View]:
    """The maps that are asked for, or one of attention."""
    asked = [one for one in explanation.saliency if one.method in request.maps]
    seen = [saliency_view(explanation, one, request.kind) for one in asked] or [view(explanation, request.which)]
    return [by_words(explanation, one) for one in seen] if request.words else seen


# ---------------------------------------------------------------- for people
def described(explanation: Explanation, seen: Sequence[View], request: ExplainRequest, colour: Colour) -> Iterator[str]:
    """Texts, what worries, the maps, every token with what the model expected, and what is known of the heads."""
    if explanation.source:
        yield labelled("source", explanation.source.text, room=8)
    if explanation.target:
        yield labelled("output" if explanation.source else "text", explanation.target.text, room=8)
        yield f"log p   {explanation.log_probability:.3f}, score {explanation.score:.3f}"
    if request.check:
        yield from worries(explanation)
    for one in seen:
        yield f"\n{one.title}: rows {'depend on' if request.maps else 'look at'} columns"
        yield terminal(one.weights, one.columns, one.rows, colour)
    yield from faithfulness_table(explanation)
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
