"""`regard align`: links between the words of given pairs, and how good they are where people have said."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from regard.aligner import Aligner, load_aligner
from regard.commands.progress import counted, say
from regard.commands.streams import chunked, refuse_loss, to_json, writing
from regard.data.alignment import read_gold
from regard.data.pairs import Pair
from regard.data.readers import read_parallel
from regard.errors import DataError, DecodingError
from regard.evaluation.alignment import AlignmentScore, Gold, Joining, Links, join, score_links, turn, write_links
from regard.explaining.alignment import Look, Step

CHUNK = 256  # pairs aligned together: enough to batch by length, few enough to see output flow


@dataclass(frozen=True)
class Place:
    """Where a user wants one model to look; nothing said: where it looks best, or by itself."""

    layer: int | Literal["all"] | None = None
    head: int | None = None
    step: Step | None = None

    @property
    def said(self) -> bool:
        return (self.layer, self.head, self.step) != (None, None, None)


@dataclass(frozen=True)
class AlignRequest:
    """What a user asks of `regard align`; `reverse` is a model of the opposite direction."""

    source: Path
    target: Path
    output: Path | None = None
    place: Place = Place()
    threshold: float = 0.0
    gold: Path | None = None
    gold_lines: int | None = None
    reverse: Path | None = None
    reverse_place: Place = Place()
    symmetrise: Joining | None = None
    score: Path | None = None
    as_json: bool = False

    @property
    def joining(self) -> Joining:
        return self.symmetrise or "grow-diag-final-and"

    def refuse_contradictions(self) -> None:
        needs = (
            (self.symmetrise, "--symmetrise", self.reverse, "--reverse"),
            (self.reverse_place.said, "--reverse-layer, --reverse-head or --reverse-step", self.reverse, "--reverse"),
            (self.gold_lines, "--gold-lines", self.gold, "--gold"),
            (self.as_json, "--json", self.score, "--score"),
        )
        for given, option, needed, other in needs:
            if given and not needed:
                raise DecodingError(f"{option}: says nothing without {other}; give both or neither")
        if self.gold and (self.place.said or self.reverse_place.said):
            raise DecodingError("--gold: finds the layer, head and step itself; leave it or those out")
        if self.gold and self.score and not self.gold_lines:
            raise DecodingError(
                "--score: of lines that were not chosen by; say with --gold-lines how many of the first to choose by"
            )


@dataclass(frozen=True)
class Sight:
    """A model and where it looks."""

    aligner: Aligner
    look: Look

    def links(self, pairs: Sequence[Pair], threshold: float) -> list[Links]:
        return self.aligner.align(pairs, self.look, threshold)


def align_files(model: Path, request: AlignRequest) -> None:
    """Writes the links of every pair, or their score, or both."""
    request.refuse_contradictions()
    refuse_loss(request.output, request.source, request.target, request.gold, request.score)
    pairs = list(read_parallel(request.source, request.target))
    # What may be wrong with the files is known before a model is opened.
    dev = chosen_by(request, pairs)
    gold = read_gold(request.score, pairs) if request.score else []
    forward, backward = sight(model, request.place, pairs, dev, "--"), None
    if request.reverse:
        turned, known = [opposite(pair) for pair in pairs], [one.turned() for one in dev]
        backward = sight(request.reverse, request.reverse_place, turned, known, "--reverse-")
    found = counted(aligned(pairs, forward, backward, request), len(pairs))
    links = list(found) if request.score and not request.output else written(found, request.output)
    if request.score:
        rest = slice(len(dev), None)
        scores = [score_links(one, other) for one, other in zip(links[rest], gold[rest], strict=True)]
        show(request, sum(scores, AlignmentScore()), forward, backward)


def chosen_by(request: AlignRequest, pairs: Sequence[Pair]) -> list[Gold]:
    """The gold links of the first pairs, by which layer and head are chosen; none without --gold."""
    if not request.gold:
        return []
    lines = request.gold_lines or len(pairs)
    if lines > len(pairs) or (request.score and lines == len(pairs)):
        rest = ", and one at least must be left to score" if request.score else ""
        raise DataError(f"--gold-lines {lines}: {request.source} has {len(pairs)} lines{rest}; say fewer")
    gold = read_gold(request.gold, pairs)[:lines]
    if not any(one.sure for one in gold):
        raise DataError(f"{request.gold}: no sure link (such as 0-2) in its first {lines} lines; choose by others")
    return gold


def sight(model: Path, place: Place, pairs: Sequence[Pair], dev: Sequence[Gold], prefix: str) -> Sight:
    """The model, looking where the user says, or where it errs least on the first pairs, which have gold links.

    `prefix`: how the options begin that would say the same.
    """
    aligner = load_aligner(model)
    if dev:
        ranking = aligner.rank(pairs[: len(dev)], dev)
        look, best = ranking[0]
        mean = dict(ranking)[Look(step=look.step)]
        say(f"{model}: {look}: AER {best.aer:.2f} % on {len(dev)} lines (mean of all: {mean.aer:.2f} %)")
        given = (("layer", look.layer or "all"), ("head", look.head), ("step", look.step))
        options = " ".join(f"{prefix}{name} {value}" for name, value in given if value is not None)
        say(f"the same without gold links: {options}")
        return Sight(aligner, look)
    look = replace(aligner.look, step=place.step or aligner.look.step)
    if place.layer is not None or place.head is not None:
        look = replace(look, layer=None if place.layer == "all" else place.layer, head=place.head)
    aligner.refuse_missing(look)
    return Sight(aligner, look)


def opposite(pair: Pair) -> Pair:
    return Pair(pair.target, pair.source)


def aligned(pairs: Sequence[Pair], forward: Sight, backward: Sight | None, request: AlignRequest) -> Iterator[Links]:
    """The links of each pair; of two models, joined."""
    for part in chunked(pairs, CHUNK):
        found = forward.links(part, request.threshold)
        if backward:
            others = backward.links([opposite(pair) for pair in part], request.threshold)
            found = [join(one, turn(other), request.joining) for one, other in zip(found, others, strict=True)]
        yield from found


def written(links: Iterable[Links], output: Path | None) -> list[Links]:
    """The same links, after a line was written for each pair; one without links is a blank line."""
    found: list[Links] = []
    with writing(output) as out:
        for part in chunked(links, CHUNK):
            out.writelines(f"{write_links(one)}\n" for one in part)
            out.flush()
            found += part
    return found


def show(request: AlignRequest, score: AlignmentScore, forward: Sight, backward: Sight | None) -> None:
    if request.as_json:
        result: dict[str, Any] = {**score.to_json(), "look": asdict(forward.look)}
        if backward:
            result |= {"reverse_look": asdict(backward.look), "symmetrise": request.joining}
        sys.stdout.write(to_json(result) + "\n")
        return
    named = (("AER", score.aer), ("precision", score.precision), ("recall", score.recall))
    lines = [f"{name:<12}{value:6.2f} %" for name, value in named]
    lines += [f"{score.links:,} links in {score.sentences:,} sentences; {forward.look}"]
    lines += [f"{request.joining} with the reverse model: {backward.look}"] if backward else []
    sys.stdout.write("".join(f"{line}\n" for line in lines))
