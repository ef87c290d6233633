"""What each command does once its options are read: text streams in, text or JSON out."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from regard.data.readers import read_lines, read_parallel, read_stream
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.engine import Engine, Translation, load
from regard.errors import DataError, DecodingError, RecipeError
from regard.evaluation.by_length import by_length
from regard.evaluation.scores import Scores, evaluate
from regard.files import check_manifest, write_atomically
from regard.layers.loss import perplexity
from regard.models.interface import parameters
from regard.recipe.averaging import average_folders

CHUNK = 1024  # lines translated together: enough to batch by length, few enough to see output flow


@dataclass(frozen=True)
class TranslateRequest:
    source: Path | None
    output: Path | None
    beam: int | None
    n_best: int
    length_penalty: float | None
    prefix: str | None
    sample: bool
    temperature: float
    top_k: int
    top_p: float
    seed: int
    as_json: bool


def translate_lines(model: Path, request: TranslateRequest) -> None:
    """Every input line gives one output line, or `n_best` of them, in order; a blank line stays blank."""
    engine = load(model)
    lines = read_lines(request.source) if request.source else read_stream(sys.stdin.buffer, "stdin")
    with writing(request.output) as out:
        for part in chunked(lines, CHUNK):
            for translation in translated(engine, part, request):
                out.writelines(f"{line}\n" for line in rendered(translation, request))
            out.flush()


def translated(engine: Engine, lines: Sequence[str], request: TranslateRequest) -> list[Translation]:
    if request.sample:
        options = sampling_options(request)
        return engine.sample(lines, options, request.seed)
    prefixes = None if request.prefix is None else [request.prefix] * len(lines)
    search = search_options(engine, request.beam, request.n_best, request.length_penalty)
    return engine.translate(lines, search, prefixes)


def sampling_options(request: TranslateRequest) -> SamplingOptions:
    try:
        return SamplingOptions(
            temperature=request.temperature, top_k=request.top_k, top_p=request.top_p, samples=request.n_best
        )
    except ValidationError as error:
        raise DecodingError(first_problem(error)) from None


def search_options(
    engine: Engine, beam: int | None, n_best: int = 1, length_penalty: float | None = None
) -> SearchOptions:
    """The model's own search with what the user changed; n best need a beam at least as wide."""
    own = engine.search
    width = beam or max(own.beam, n_best)
    penalty = own.length_penalty if length_penalty is None else length_penalty
    try:
        return SearchOptions.model_validate(
            {**own.model_dump(), "beam": width, "n_best": n_best, "length_penalty": penalty}
        )
    except ValidationError as error:
        raise DecodingError(first_problem(error)) from None


def first_problem(error: ValidationError) -> str:
    """What is wrong with an option, in one line."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    text = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


def rendered(translation: Translation, request: TranslateRequest) -> Iterator[str]:
    if request.as_json:
        candidates = [asdict(candidate) for candidate in translation.candidates]
        yield json.dumps(
            {"source": translation.source, "text": translation.text, "candidates": candidates}, ensure_ascii=False
        )
    else:
        yield from (candidate.text for candidate in translation.candidates)


def chunked(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while part := list(islice(iterator, size)):
        yield part


@contextmanager
def writing(path: Path | None) -> Iterator[IO[str]]:
    """stdout, or a file that appears under its name only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        with fresh.open("w", encoding="utf-8", newline="\n") as out:
            yield out
        fresh.replace(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        fresh.unlink(missing_ok=True)


def evaluate_files(
    model: Path, source: Path, target: Path, *, beam: int | None, output: Path | None, by_length: bool, as_json: bool
) -> None:
    """Translate, score, show; the seconds are those of translation alone."""
    pairs = list(read_parallel(source, target))
    engine = load(model)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    began = time.perf_counter()
    outputs = [translation.text for translation in engine.translate(sources, search_options(engine, beam))]
    seconds = time.perf_counter() - began
    if output:
        write_atomically(output, "".join(f"{line}\n" for line in outputs))
    scores = evaluate(outputs, references)
    given = engine.score(pairs)
    model_perplexity = perplexity(-sum(s.log_probability for s in given) / sum(s.tokens for s in given))
    lengths = table_by_length(sources, outputs, references) if by_length else []
    result = {**scores.to_json(), "perplexity": round(model_perplexity, 4), "seconds": round(seconds, 3)}
    if as_json:
        sys.stdout.write(json.dumps({**result, **({"by_length": lengths} if by_length else {})}) + "\n")
    else:
        show_scores(scores, model_perplexity, seconds, lengths)


def table_by_length(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> list[dict[str, Any]]:
    return [bucket.to_json() for bucket in by_length(sources, outputs, references)]


def show_scores(scores: Scores, model_perplexity: float, seconds: float, lengths: Sequence[dict[str, Any]]) -> None:
    console = Console()
    table = Table("score", "value", "signature")
    for name, score in scores.named():
        table.add_row(name, f"{score.score:.2f}", score.signature)
    table.add_row("exact match", f"{scores.exact_match:.2f} %", "")
    table.add_row("perplexity", f"{model_perplexity:.2f}", "")
    console.print(table)
    console.print(f"{scores.sentences:,} sentences in {seconds:.1f} s")
    if lengths:
        buckets = Table(*lengths[0])
        for row in lengths:
            buckets.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
        console.print(buckets)


def score_files(model: Path, source: Path, target: Path, *, as_json: bool) -> None:
    """log p(target | source) of every pair, one a line."""
    pairs = list(read_parallel(source, target))
    for score in load(model).score(pairs):
        if as_json:
            line = {"log_probability": score.log_probability, "tokens": score.tokens, "perplexity": score.perplexity}
            sys.stdout.write(json.dumps(line) + "\n")
        else:
            sys.stdout.write(f"{score.log_probability:.6f}\n")


def average_models(models: Sequence[Path], out: Path, last: int | None) -> None:
    """A new model directory whose weights are the mean of several."""
    if out.exists():
        raise RecipeError(f"{out}: already exists; choose another --out")
    count = average_folders(models, out, last)
    sys.stdout.write(f"{out}: the average of {count} sets of weights\n")


def inspect_model(model: Path, *, as_json: bool) -> None:
    """Sizes, vocabulary, recipe, scores and files of a model directory."""
    engine = load(model)
    facts = check_manifest(model)
    recipe, vocabularies = engine.folder.recipe, engine.vocabularies
    summary = {
        "model": recipe.model.kind,
        "parameters": parameters(engine.model),
        "vocabulary": {
            "kind": recipe.text.kind,
            "source": len(vocabularies.source),
            "target": len(vocabularies.target),
        },
        "validation": facts.get("validation"),
        "recipe": recipe.model_dump(mode="json"),
        "files": facts["files"],
    }
    if as_json:
        sys.stdout.write(json.dumps(summary, ensure_ascii=False) + "\n")
        return
    console = Console()
    console.print(f"[bold]{model}[/]: {summary['model']}, {summary['parameters']:,} parameters")
    table = Table("part", "content", show_header=False)
    for name, shape in layer_sizes(engine):
        table.add_row(name, shape)
    console.print(table)
    for section, values in summary["recipe"].items():
        console.print(
            f"[bold]{section}[/]: " + ", ".join(f"{key} {value}" for key, value in values.items()), highlight=False
        )
    for name, digest in summary["files"].items():
        console.print(f"{digest[:12]}  {name}", highlight=False)


def layer_sizes(engine: Engine) -> list[tuple[str, str]]:
    """Parameters of each part of encoder and decoder."""
    parts = []
    for side in ("encoder", "decoder"):
        for name, child in engine.model.get_submodule(side).named_children():
            parts.append((f"{side}.{name}", f"{parameters(child):,}"))
    return parts
