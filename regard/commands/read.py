"""`regard fill`, `regard embed` and `regard classify`: lines in, words, vectors or labels out."""

import io
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.commands.streams import chunked, input_lines, one_line, refuse_loss, to_json, writing
from regard.data.accounts import resolve
from regard.data.labelled import read_labelled
from regard.data.options import LabelledOptions
from regard.errors import DataError
from regard.evaluation.accuracy import Counts, accuracy, confusion, macro_f1
from regard.files import write_atomically
from regard.reader import Classifier, Decision, load_classifier, load_embedder, load_filler
from regard.recipe.asked import Columns, form_of

CHUNK = 2000  # lines that are sorted by length together
DIGITS = 7  # of a float32


def fill_holes(model: Path, text: str, *, top: int, as_json: bool) -> None:
    """Writes a line for each hole: its likeliest tokens, each with its probability."""
    holes = load_filler(model).fill(text, top)
    if as_json:
        found = [[{"text": g.text, "piece": g.piece, "p": g.probability} for g in guesses] for guesses in holes]
        sys.stdout.write(to_json({"text": text, "holes": found}) + "\n")
        return
    for guesses in holes:
        line = "  ".join(f"{shown(g.text, g.piece)} {g.probability:.3f}" for g in guesses)
        sys.stdout.write(line + "\n")


def shown(text: str, piece: str) -> str:
    """A token for people; one that would not be seen by its name."""
    return text if text.strip() and text.isprintable() else piece


def embed_lines(model: Path, source: Path | None, output: Path | None) -> None:
    """A vector for each line: a JSON array a line, or all of them as one NumPy array where `output` ends in .npy."""
    refuse_loss(output, source)
    embedder = load_embedder(model)
    parts = (embedder.embed(lines).numpy() for lines in chunked(input_lines(source), CHUNK))
    if output is not None and output.suffix == ".npy":
        found, content = list(parts), io.BytesIO()
        if not found:
            raise DataError(f"{source or 'stdin'}: found no line to embed; give some text")
        np.save(content, np.concatenate(found))
        write_atomically(output, content.getvalue())
        return
    with writing(output) as out:
        for part in parts:
            out.writelines(to_json([float(f"{x:.{DIGITS}g}") for x in vector]) + "\n" for vector in part.tolist())


@dataclass(frozen=True)
class ClassifyRequest:
    """What a user asks of `regard classify`."""

    source: Path | None = None
    output: Path | None = None
    separator: str = "\t"
    scores: bool = False
    labelled: Path | None = None
    text_column: str | None = None
    second_column: str | None = None
    label_column: str | None = None
    as_json: bool = False


def classify_lines(model: Path, request: ClassifyRequest) -> None:
    """Writes the label of each line, a blank line for a blank one; or, of labelled texts, how many are right."""
    refuse_loss(request.output, request.source, request.labelled)
    classifier = load_classifier(model)
    if request.labelled is not None:
        report(classifier, request)
        return
    number = 0
    with writing(request.output) as out:
        for lines in chunked(input_lines(request.source), CHUNK):
            place = str(request.source or "stdin")
            decisions = decide(classifier, lines, request.separator, place, number)
            number += len(lines)
            out.writelines(f"{answer(decision, request)}\n" for decision in decisions)


def decide(
    classifier: Classifier, lines: Sequence[str], separator: str, place: str, before: int
) -> Iterator[Decision | None]:
    """A decision for each line, none for a blank one. The lines of a model of pairs hold two texts."""
    full = [(before + number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    texts, seconds = [line for _, line in full], None
    if classifier.pairs:
        pairs = [line.split(separator) for line in texts]
        for (number, line), pair in zip(full, pairs, strict=True):
            if len(pair) != 2 or not all(text.strip() for text in pair):
                raise DataError(
                    f"{place}, line {number}: found {line[:40]!r}, expected two texts with {separator!r} between "
                    "them; this model learned from pairs"
                )
        texts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    found = iter(classifier.classify(texts, seconds))
    return (next(found) if line.strip() else None for line in lines)


def answer(decision: Decision | None, request: ClassifyRequest) -> str:
    if request.as_json:
        empty: dict[str, object] = {"label": None, "p": None, "probabilities": {}}
        full = decision and {
            "label": decision.label,
            "p": decision.probability,
            "probabilities": decision.probabilities,
        }
        return to_json(full or empty)
    if decision is None:
        return ""
    label = one_line(decision.label)
    return f"{label}\t{decision.probability:.4f}" if request.scores else label


# ---------------------------------------------------------------- how many are right
def report(classifier: Classifier, request: ClassifyRequest) -> None:
    """Accuracy, macro F1 and which class was taken for which, of a file of labelled texts."""
    options, labels = form(classifier, request), classifier.folder.classes.labels
    examples = list(read_labelled(options, "refuse", Counter()))
    actual = labels.ids([example.label for example in examples], str(request.labelled)).tolist()
    seconds = [example.second or "" for example in examples] if options.second is not None else None
    decisions = classifier.classify([example.text for example in examples], seconds)
    predicted = labels.ids([decision.label for decision in decisions], str(request.labelled)).tolist()
    counts = confusion(predicted, actual, len(labels))
    if request.as_json:
        found = {
            "accuracy": accuracy(counts),
            "macro_f1": macro_f1(counts),
            "texts": len(examples),
            "labels": list(labels.names),
            "confusion": counts.tolist(),
        }
        sys.stdout.write(to_json(found) + "\n")
        return
    lines = [f"accuracy {accuracy(counts):.2f} %, macro F1 {macro_f1(counts):.2f}, {len(examples):,} texts", ""]
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, *table(counts, labels.names)]))


def form(classifier: Classifier, request: ClassifyRequest) -> LabelledOptions:
    """How the file is read: as the one that the model learned from, unless the request says otherwise."""
    assert request.labelled is not None
    learned = next((corpus for corpus in classifier.folder.recipe.data.labelled if corpus.file is not None), None)
    own = {} if learned is None else learned.model_dump(include={"form", "columns", "text", "second", "label"})
    if named := form_of(request.labelled):
        own |= {"form": named, **({} if named == own.get("form") else {"columns": ()})}
    asked = Columns(request.text_column, request.second_column, request.label_column).given()
    return LabelledOptions.model_validate({**own, **asked, "file": resolve(request.labelled)})


def table(counts: Counts, names: Sequence[str]) -> Iterator[str]:
    """counts[a, p] with the names of the classes; a row is what texts are, a column what they were taken for."""
    shortest = [one_line(name) for name in names]
    rows = zip(shortest, counts.tolist(), strict=True)
    cells = [["is \\ taken for", *shortest], *([name, *map(str, row)] for name, row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        first, *rest = row
        yield "  ".join([first.ljust(widths[0]), *(x.rjust(width) for x, width in zip(rest, widths[1:], strict=True))])
