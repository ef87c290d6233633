"""What each command does once its options are read: text streams in, text or JSON out."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError

from regard.data.readers import read_lines, read_parallel, read_stream
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.engine import Engine, TorchEngine, Translation, load
from regard.errors import DataError, DecodingError, RegardError
from regard.evaluation.by_length import Bucket, table
from regard.evaluation.by_length import by_length as buckets
from regard.evaluation.scores import Scores, evaluate
from regard.exporting.argos import Languages, export_argos
from regard.exporting.ctranslate2 import Quantise, export_ctranslate2
from regard.files import check_manifest, write_atomically
from regard.layers.loss import perplexity
from regard.models.interface import parameters
from regard.recipe.averaging import average_folders
from regard.recipe.recipe import to_yaml
from regard.section import Section
from regard.workers import Workers, cores

CHUNK = 1024  # lines translated together: enough to batch by length, few enough to see output flow
MANY = 1000  # lines from which on worker processes, which take seconds to start, save more than that
SEED = 1  # of samples for which none was given
SEARCHING = ("beam", "length_penalty", "prefix", "workers", "shortlist")  # options that mean nothing to sampling
DRAWING = ("temperature", "top_k", "top_p", "seed")  # and those that mean nothing to search

SIGNED = ("bleu", "chrf", "ter")  # scores that come with a signature

S = TypeVar("S", bound=Section)
T = TypeVar("T")


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
    engine: str = "torch"
    workers: int | None = None
    shortlist: bool = False

    @property
    def only_text(self) -> bool:
        """Nobody asks for scores, alternatives or a given beginning."""
        return not (self.as_json or self.sample) and self.n_best == 1 and self.prefix is None


def translate_lines(model: Path, request: TranslateRequest) -> None:
    """Every input line gives `n_best` output lines, in order; a blank line stays blank."""
    refuse_unheard(request)
    lines = input_lines(request.source)
    with ExitStack() as stack:
        speak = speaking(model, request, lines, lambda: load(model, request.engine, shortlist=request.shortlist))
        parts = stack.enter_context(speak)
        out = stack.enter_context(writing(request.output))
        for part in parts:
            out.writelines(f"{line}\n" for line in part)
            out.flush()


@contextmanager
def speaking(
    model: Path, request: TranslateRequest, lines: Iterator[str], open_engine: Callable[[], Engine]
) -> Iterator[Iterator[list[str]]]:
    """The output lines in order, part by part: by workers where there is enough for them to do."""
    first = list(islice(lines, MANY))
    lines, count = chain(first, lines), worker_count(request, len(first))
    if count > 1:
        with Workers(model, count, shortlist=request.shortlist) as workers:
            options = search_options(workers.search, request)
            if request.only_text:
                yield chunked(map(one_line, workers.write(lines, options)), CHUNK)
            else:
                found = workers.translate(lines, options, request.prefix)
                yield chunked((line for one in found for line in rendered(one, request)), CHUNK)
    else:
        engine = open_engine()
        yield (said(engine, part, request) for part in chunked(lines, CHUNK))


def worker_count(request: TranslateRequest, lines: int) -> int:
    """As asked; else one for each core, where there are `MANY` lines and a search that workers can do."""
    if request.workers is not None:
        return request.workers
    able = request.engine == "torch" and not request.sample
    return cores() if able and lines >= MANY else 1


def refuse_unheard(request: TranslateRequest) -> None:
    """An option that would change nothing is a mistake."""
    unheard, where = (SEARCHING, "without") if request.sample else (DRAWING, "with")
    for name in unheard:
        if getattr(request, name) not in (None, False):
            raise DecodingError(f"--{name.replace('_', '-')}: has an effect only {where} --sample; change one of them")
    if request.workers is not None and request.engine != "torch":
        raise DecodingError(f"--workers: {request.engine} uses all cores by itself; leave it out")


def input_lines(path: Path | None) -> Iterator[str]:
    """Lines of a file, or of stdin; there may be none."""
    if path is None:
        return read_stream(sys.stdin.buffer, "stdin")
    if path.is_file() and path.stat().st_size == 0:
        return iter(())
    return read_lines(path)


def said(engine: Engine, lines: Sequence[str], request: TranslateRequest) -> list[str]:
    """The output lines for these input lines."""
    if request.only_text:
        return [one_line(text) for text in engine.write(lines, search_options(engine.search, request))]
    return [line for one in translated(engine, lines, request) for line in rendered(one, request)]


def translated(engine: Engine, lines: Sequence[str], request: TranslateRequest) -> list[Translation]:
    if request.sample:
        asked = {name: getattr(request, name) for name in ("temperature", "top_k", "top_p")}
        options = checked(SamplingOptions(samples=request.n_best), asked)
        return engine.sample(lines, options, SEED if request.seed is None else request.seed)
    prefixes = None if request.prefix is None else [request.prefix] * len(lines)
    return engine.translate(lines, search_options(engine.search, request), prefixes)


def search_options(own: SearchOptions, request: TranslateRequest) -> SearchOptions:
    """The model's own search with what the user changed; n best need a beam at least as wide."""
    width = request.beam or max(own.beam, request.n_best)
    asked = {"beam": width, "n_best": request.n_best, "length_penalty": request.length_penalty}
    return checked(own, asked)


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


def chunked(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
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


@dataclass(frozen=True)
class EvaluateRequest:
    """What a user asks of `regard evaluate`; none: as the model's recipe has it."""

    source: Path
    target: Path
    beam: int | None = None
    output: Path | None = None
    by_length: bool = False
    as_json: bool = False
    engine: str = "torch"
    workers: int | None = None
    shortlist: bool = False

    def search(self) -> TranslateRequest:
        return TranslateRequest(beam=self.beam, engine=self.engine, workers=self.workers, shortlist=self.shortlist)


def evaluate_files(model: Path, request: EvaluateRequest) -> None:
    """Translate, score, show; the seconds are those of translation alone."""
    pairs = list(read_parallel(request.source, request.target))
    refuse_unheard(request.search())
    engine = load(model, request.engine, shortlist=request.shortlist)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    with speaking(model, request.search(), iter(sources), lambda: engine) as parts:
        began = time.perf_counter()
        outputs = [line for part in parts for line in part]
        seconds = time.perf_counter() - began
    if request.output:
        write_atomically(request.output, "".join(f"{line}\n" for line in outputs))
    scores = evaluate(outputs, references)
    given = engine.score(pairs)
    model_perplexity = perplexity(-sum(s.log_probability for s in given) / sum(s.tokens for s in given))
    lengths = buckets(sources, outputs, references) if request.by_length else []
    if request.as_json:
        result = {**scores.to_json(), "perplexity": round(model_perplexity, 4), "seconds": round(seconds, 3)}
        table_of_lengths = {"by_length": [bucket.to_json() for bucket in lengths]} if request.by_length else {}
        sys.stdout.write(to_json({**result, **table_of_lengths}) + "\n")
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


@dataclass(frozen=True)
class ExportRequest:
    """What a user asks of `regard export`; the two language codes are Argos's."""

    out: Path
    to: str
    quantise: Quantise = "float32"
    from_code: str | None = None
    to_code: str | None = None


def export_model(model: Path, request: ExportRequest) -> None:
    """A copy of the model for another program."""
    from_code, to_code = request.from_code, request.to_code
    if request.to == "argos":
        if from_code is None or to_code is None:
            raise RegardError("--to argos: needs the languages' codes; add, for example, --from-code en --to-code de")
        export_argos(model, request.out, Languages(from_code, to_code), request.quantise)
    elif from_code or to_code:
        raise RegardError("--from-code, --to-code: have an effect only with --to argos; leave them out")
    else:
        export_ctranslate2(model, request.out, request.quantise)
    sys.stdout.write(f"{request.out}: {model} for {request.to}, {request.quantise}\n")


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


def part_sizes(engine: TorchEngine) -> dict[str, int]:
    """Parameters of each part of encoder and decoder; a weight that two parts share counts in both."""
    return {
        f"{side}.{name}": parameters(child)
        for side in ("encoder", "decoder")
        for name, child in engine.model.get_submodule(side).named_children()
    }
