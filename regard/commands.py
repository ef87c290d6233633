"""What each command does once its options are read: text streams in, text or JSON out."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError

from regard.data.readers import read_lines, read_parallel, read_stream
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.engine import Engine, Translation, load
from regard.errors import DataError, DecodingError
from regard.evaluation.by_length import Bucket, table
from regard.evaluation.by_length import by_length as buckets
from regard.evaluation.scores import Scores, evaluate
from regard.files import check_manifest, write_atomically
from regard.layers.loss import perplexity
from regard.models.interface import parameters
from regard.recipe.averaging import average_folders
from regard.recipe.recipe import to_yaml
from regard.section import Section

CHUNK = 1024  # lines translated together: enough to batch by length, few enough to see output flow
SEED = 1  # of samples for which none was given
SEARCHING = ("beam", "length_penalty", "prefix")  # options that mean nothing to sampling
DRAWING = ("temperature", "top_k", "top_p", "seed")  # and those that mean nothing to search

SIGNED = ("bleu", "chrf", "ter")  # scores that come with a signature

S = TypeVar("S", bound=Section)


@dataclass(frozen=True)
class TranslateRequest:
    """What a user asks of `regard translate`; none: as the model's recipe has it."""

    source: Path | None = None
    output: Path | None = None
    beam: int | None = None
    n_best: int = 1
    length_penalty: float | None = None
    prefix: str | None = None
    sample: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    as_json: bool = False


def translate_lines(model: Path, request: TranslateRequest) -> None:
    """Every input line gives `n_best` output lines, in order; a blank line stays blank."""
    refuse_unheard(request)
    engine = load(model)
    lines = input_lines(request.source)
    with writing(request.output) as out:
        for part in chunked(lines, CHUNK):
            for translation in translated(engine, part, request):
                out.writelines(f"{line}\n" for line in rendered(translation, request))
            out.flush()


def refuse_unheard(request: TranslateRequest) -> None:
    """An option that would change nothing is a mistake."""
    unheard, where = (SEARCHING, "without") if request.sample else (DRAWING, "with")
    for name in unheard:
        if getattr(request, name) is not None:
            raise DecodingError(f"--{name.replace('_', '-')}: has an effect only {where} --sample; change one of them")


def input_lines(path: Path | None) -> Iterator[str]:
    """Lines of a file, or of stdin; there may be none."""
    if path is None:
        return read_stream(sys.stdin.buffer, "stdin")
    if path.is_file() and path.stat().st_size == 0:
        return iter(())
    return read_lines(path)


def translated(engine: Engine, lines: Sequence[str], request: TranslateRequest) -> list[Translation]:
    if request.sample:
        asked = {name: getattr(request, name) for name in ("temperature", "top_k", "top_p")}
        options = checked(SamplingOptions(samples=request.n_best), asked)
        return engine.sample(lines, options, SEED if request.seed is None else request.seed)
    prefixes = None if request.prefix is None else [request.prefix] * len(lines)
    return engine.translate(lines, search_options(engine, request), prefixes)


def search_options(engine: Engine, request: TranslateRequest) -> SearchOptions:
    """The model's own search with what the user changed; n best need a beam at least as wide."""
    width = request.beam or max(engine.search.beam, request.n_best)
    asked = {"beam": width, "n_best": request.n_best, "length_penalty": request.length_penalty}
    return checked(engine.search, asked)


def checked(own: S, asked: Mapping[str, Any]) -> S:
    """The section with the values that were asked for, none being no wish; one line about the first impossible one."""
    wishes = {name: value for name, value in asked.items() if value is not None}
    try:
        return type(own).model_validate({**own.model_dump(), **wishes})
    except ValidationError as error:
        problem = error.errors()[0]
        where = "".join(f"{part}: " for part in problem["loc"])
        raise DecodingError(where + problem["msg"].removeprefix("Value error, ")) from None


def rendered(translation: Translation, request: TranslateRequest) -> Iterator[str]:
    """`n_best` lines of text, blank ones where the search found fewer, or one line of JSON."""
    if request.as_json:
        candidates = [asdict(candidate) for candidate in translation.candidates]
        yield to_json({"source": translation.source, "text": translation.text, "candidates": candidates})
    else:
        texts = [one_line(candidate.text) for candidate in translation.candidates]
        yield from texts + [""] * (request.n_best - len(texts))


def one_line(text: str) -> str:
    """A model that knows bytes can write a line break, which would shift every later line of the output."""
    return text.replace("\n", " ").replace("\r", " ")


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


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
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another --output") from None
    finally:
        with suppress(OSError):
            fresh.unlink()


def evaluate_files(
    model: Path, source: Path, target: Path, *, beam: int | None, output: Path | None, by_length: bool, as_json: bool
) -> None:
    """Translate, score, show; the seconds are those of translation alone."""
    pairs = list(read_parallel(source, target))
    engine = load(model)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    began = time.perf_counter()
    found = engine.translate(sources, search_options(engine, TranslateRequest(beam=beam)))
    outputs = [one_line(translation.text) for translation in found]
    seconds = time.perf_counter() - began
    if output:
        write_atomically(output, "".join(f"{line}\n" for line in outputs))
    scores = evaluate(outputs, references)
    given = engine.score(pairs)
    model_perplexity = perplexity(-sum(s.log_probability for s in given) / sum(s.tokens for s in given))
    lengths = buckets(sources, outputs, references) if by_length else []
    result = {**scores.to_json(), "perplexity": round(model_perplexity, 4), "seconds": round(seconds, 3)}
    if as_json:
        sys.stdout.write(
            to_json({**result, **({"by_length": [bucket.to_json() for bucket in lengths]} if by_length else {})}) + "\n"
        )
    else:
        show_scores(scores, model_perplexity, seconds, lengths)


def show_scores(scores: Scores, model_perplexity: float, seconds: float, lengths: Sequence[Bucket]) -> None:
    """One score a line, its whole signature behind it: a table would cut that off in a narrow terminal."""
    lines = [f"{name:<12}{score.score:6.2f}    {score.signature}" for name, score in scores.named()]
    lines += [f"exact match {scores.exact_match:6.2f} %", f"perplexity  {model_perplexity:6.2f}"]
    lines += [f"{scores.sentences:,} sentences in {seconds:.1f} s"]
    if lengths:
        lines += ["", table(lengths).rstrip()]
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def score_files(model: Path, source: Path, target: Path, *, as_json: bool) -> None:
    """log p(target | source) of every pair, one a line."""
    pairs = list(read_parallel(source, target))
    for score in load(model).score(pairs):
        if as_json:
            line = {"log_probability": score.log_probability, "tokens": score.tokens, "perplexity": score.perplexity}
            sys.stdout.write(to_json(line) + "\n")
        else:
            sys.stdout.write(f"{score.log_probability:.6f}\n")


def average_models(models: Sequence[Path], out: Path, last: int | None) -> None:
    """A new model directory whose weights are the mean of several."""
    count = average_folders(models, out, last)
    sys.stdout.write(f"{out}: the average of {count} sets of weights\n")


def inspect_model(model: Path, *, as_json: bool) -> None:
    """Sizes, vocabulary, recipe, scores and files of a model directory."""
    engine = load(model)
    facts = check_manifest(model)
    recipe, vocabularies = engine.folder.recipe, engine.vocabularies
    sizes = {"source": len(vocabularies.source), "target": len(vocabularies.target)}
    summary = {
        "model": recipe.model.kind,
        "parameters": parameters(engine.model),
        "parts": part_sizes(engine),
        "vocabulary": {"kind": recipe.text.kind, **sizes},
        "validation": facts.get("validation"),
        "recipe": recipe.model_dump(mode="json"),
        "files": facts["files"],
    }
    if as_json:
        sys.stdout.write(to_json(summary) + "\n")
    else:
        summary["yaml"] = to_yaml(recipe)
        sys.stdout.write("".join(f"{line}\n" for line in described(summary)))


def described(summary: Mapping[str, Any]) -> Iterator[str]:
    """The summary for people, line by line."""
    yield f"{summary['model']}, {summary['parameters']:,} parameters"
    yield from (f"  {part}: {count:,}" for part, count in summary["parts"].items() if count)
    yield "vocabulary: " + pairs_of(summary["vocabulary"])
    for name, score in (summary["validation"] or {}).items():
        yield f"validation {name}: " + (
            f"{score['score']:.2f}  {score['signature']}" if name in SIGNED else f"{score:g}"
        )
    yield from ("recipe:", *(f"  {line}" for line in summary["yaml"].splitlines()))
    yield from (f"{digest[:12]}  {name}" for name, digest in summary["files"].items())


def pairs_of(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def part_sizes(engine: Engine) -> dict[str, int]:
    """Parameters of each part of encoder and decoder; a weight that two parts share counts in both."""
    return {
        f"{side}.{name}": parameters(child)
        for side in ("encoder", "decoder")
        for name, child in engine.model.get_submodule(side).named_children()
    }
