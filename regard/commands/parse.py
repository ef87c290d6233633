"""`regard parse`: the tree of every sentence, and how good the trees are where they are known."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.commands.options import checked
from regard.commands.streams import chunked, input_lines, refuse_loss, to_json, write_lines, writing
from regard.data.treebank import outermost, read_treebank
from regard.errors import DataError, DecodingError
from regard.evaluation.parses import score_parses, tagged_as
from regard.evaluation.trees import Tree, write_tree
from regard.explaining.tree_picture import sheet, terminal
from regard.files import write_atomically
from regard.parser import load_parser

CHUNK = 256  # sentences parsed together: enough to batch by length, few enough to see output flow
Form = Literal["brackets", "text", "json"]


@dataclass(frozen=True)
class ParseRequest:
    """What a user asks of `regard parse`."""

    source: Path | None = None
    output: Path | None = None
    beam: int | None = None
    form: Form = "brackets"
    svg: Path | None = None
    gold: Path | None = None
    as_json: bool = False


def parse_lines(model: Path, request: ParseRequest) -> None:
    """Writes the tree of each line, or the scores of all sentences of a treebank."""
    refuse_loss(request.output, request.source, request.gold)
    if request.gold is None:
        write_trees(model, request)
        return
    for given, option in ((request.source, "--input"), (request.svg, "--svg")):
        if given is not None:
            raise DecodingError(f"--gold {request.gold}: its own sentences are parsed and scored; leave out {option}")
    score_gold(model, request, request.gold)


def write_trees(model: Path, request: ParseRequest) -> None:
    """A tree for each line, in order; a blank line stays blank."""
    parser, drawn = load_parser(model), list[Tree]()
    search = checked(parser.search, {"beam": request.beam})
    form = "json" if request.as_json else request.form
    with writing(request.output) as out:
        for lines in chunked(input_lines(request.source), CHUNK):
            trees = parser.parse(lines, search)
            out.writelines(f"{shown(line, tree, form)}\n" for line, tree in zip(lines, trees, strict=True))
            out.flush()
            drawn += [outermost(tree) for tree in trees if tree is not None and request.svg]
    if request.svg and not drawn:
        raise DataError(f"--svg {request.svg}: found no sentence to draw; give one a line")
    if request.svg:
        write_atomically(request.svg, sheet(drawn))


def shown(line: str, tree: Tree | None, form: str) -> str:
    """One sentence's tree as the user wants it; drawings have a blank line after each."""
    match form:
        case "json":
            found = [] if tree is None else list(constituents(tree))
            return to_json({"text": line, "tree": tree and write_tree(tree), "constituents": found})
        case "text":
            return "" if tree is None else terminal(outermost(tree)) + "\n"
        case _:
            return "" if tree is None else write_tree(tree)


def constituents(tree: Tree, start: int = 0) -> Iterator[dict[str, str | int]]:
    """Each constituent with its first word and the one after its last, counted from 0; outer ones first."""
    if tree.children:
        yield {"label": tree.label, "start": start, "end": start + len(tree.words)}
    for child in tree.children:
        yield from constituents(child, start)
        start += len(child.words)


def score_gold(model: Path, request: ParseRequest, gold: Path) -> None:
    """Parses the words of a treebank's trees and compares; the parses can be kept, under the tags of the treebank."""
    trees, parser = read_treebank(gold), load_parser(model)
    search = checked(parser.search, {"beam": request.beam})
    began = time.perf_counter()
    parsed = parser.parse_words([tree.words for tree in trees], search)
    seconds = time.perf_counter() - began
    scores = score_parses(trees, parsed)
    if request.output:
        write_lines(request.output, map(write_tree, tagged_as(trees, parsed)))
    if request.as_json or request.form == "json":
        sys.stdout.write(to_json({**scores.to_json(), "seconds": round(seconds, 3)}) + "\n")
        return
    told = [*scores.lines(), f"{len(trees):,} sentences in {seconds:.1f} s, beam {search.beam}"]
    rules = "labelled brackets by EVALB's rules (COLLINS.prm), under the tags of the treebank: the parser gives none"
    sys.stdout.write("".join(f"{line}\n" for line in [*told, rules]))
