"""`regard translate`: every input line gives its translations, in order."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from regard.commands.check import check_in
from regard.commands.options import checked
from regard.commands.streams import chunked, input_lines, input_text, one_line, refuse_loss, to_json, writing
from regard.decoding.consensus import UTILITIES, UtilityName, by_agreement
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.documents import ByAttention, translate_html, translate_text
from regard.engine import Engine, Translation, load
from regard.errors import DecodingError
from regard.faithful import Wishes
from regard.workers import Workers, cores

CHUNK = 1024  # lines translated together: enough to batch by length, few enough to see output flow
MANY = 1000  # lines from which on worker processes, which take seconds to start, save more than that
WIDEST = 64  # the largest beam
SEED = 1  # of samples for which none was given
# Options that mean nothing to sampling.
SEARCHING = ("beam", "length_penalty", "prefix", "workers", "shortlist", "glossary", "keep")
DRAWING = ("temperature", "top_k", "top_p", "seed")  # and those that mean nothing to search
UTILITY: UtilityName = "chrf"  # by which candidates agree, if nobody says
Form = Literal["lines", "text", "html"]  # of the input, and so of the output
Check = Callable[[Translation], dict[str, Any]]


@dataclass(frozen=True)
class TranslateRequest:
    """What a user asks of `regard translate`; none: as the model's recipe has it."""

    source: Path | None = None
    output: Path | None = None
    beam: int | None = None
    n_best: int = 1
    length_penalty: float | None = None
    ask: str = ""  # stands before every input line: the task, of a model that knows several
    prefix: str | None = None
    sample: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    as_json: bool = False
    check: bool = False  # also say what is wrong with each translation
    engine: str = "torch"
    workers: int | None = None
    shortlist: bool = False
    others: tuple[Path, ...] = ()  # models that speak together with the first
    mbr: int | None = None  # candidates of which the most agreed one is chosen
    utility: UtilityName | None = None
    glossary: Path | None = None  # source term, tab, target term
    keep: tuple[str, ...] = ()  # terms that are not translated
    keep_placeholders: bool = False
    form: Form = "lines"
    language: str | None = None  # of the source, by whose rules sentences end

    @property
    def only_text(self) -> bool:
        """Nobody asks for scores, alternatives or a given beginning."""
        return not (self.as_json or self.sample) and self.candidates == 1 and self.prefix is None

    @property
    def candidates(self) -> int:
        """How many the model is asked for."""
        return self.mbr or self.n_best

    def asked(self, line: str) -> str:
        """What the model reads; a blank line stays blank."""
        return self.ask + line if line.strip() else line

    @property
    def wishes(self) -> Wishes:
        return Wishes(self.keep_placeholders, self.keep, self.glossary)

    def open(self, model: Path) -> Engine:
        return self.wishes.over(load(model, self.engine, shortlist=self.shortlist, others=self.others))


def translate_lines(model: Path, request: TranslateRequest) -> None:
    """Every input line gives `n_best` output lines, in order; a blank line stays blank. Or one text becomes another."""
    refuse_unheard(request)
    refuse_loss(request.output, request.source, request.glossary)
    if request.form != "lines":
        translate_whole(model, request)
        return
    lines = map(request.asked, input_lines(request.source))
    with ExitStack() as stack:
        parts = stack.enter_context(speaking(model, request, lines, lambda: request.open(model)))
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
        with Workers(model, count, shortlist=request.shortlist, wishes=request.wishes) as workers:
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
    able = request.engine == "torch" and not (request.sample or request.others or request.check)
    return cores() if able and lines >= MANY else 1


def refuse_unheard(request: TranslateRequest) -> None:
    """An option that would change nothing is a mistake."""
    unheard, where = (SEARCHING, "without") if request.sample else (DRAWING, "with")
    for name in unheard:
        if getattr(request, name) != getattr(TranslateRequest, name):  # 0 is a wish too
            raise DecodingError(f"--{name.replace('_', '-')}: has an effect only {where} --sample; change one of them")
    if request.workers is not None and request.engine != "torch":
        raise DecodingError(f"--workers: {request.engine} uses all cores by itself; leave it out")
    if (request.workers or 1) > 1 and request.others:
        raise DecodingError(f"--workers {request.workers}: models that speak together take one process; leave it out")
    refuse_lines(request)
    refuse_check(request)
    if request.utility and not request.mbr:
        raise DecodingError("--utility: has an effect only with --mbr; change one of them")
    if request.mbr and not request.sample and not request.mbr <= (request.beam or WIDEST) <= WIDEST:
        raise DecodingError(
            f"--mbr {request.mbr}: a search keeps at most {request.beam or WIDEST} candidates; lower --mbr or "
            f"{'raise --beam' if request.beam else 'draw them with --sample'}"
        )
    if request.n_best > request.candidates:
        raise DecodingError(f"--n-best: {request.n_best} of {request.mbr} candidates; raise --mbr or lower --n-best")


def refuse_lines(request: TranslateRequest) -> None:
    """What only lines can be asked for, and what only whole texts can."""
    if request.form == "lines":
        if request.language:
            raise DecodingError("--language: has an effect only with --format text or html; change one of them")
        return
    asked = {"json": request.as_json, "sample": request.sample, "n-best": request.n_best > 1, "ask": bool(request.ask)}
    asked |= {name: getattr(request, name) is not None for name in ("prefix", "mbr", "workers")}
    for name in asked:
        if asked[name]:
            raise DecodingError(f"--{name}: is for lines, not with --format {request.form}; leave one of them out")


def refuse_check(request: TranslateRequest) -> None:
    """Checks are facts beside each translation, found by the process that holds the model."""
    if not request.check:
        return
    if not request.as_json:
        raise DecodingError("--check: what it finds is written with --json; add it")
    if request.engine != "torch":
        raise DecodingError(
            f"--check: {request.engine} cannot be asked what its outputs depend on; leave one of the two out"
        )
    if (request.workers or 1) > 1:
        raise DecodingError(f"--workers {request.workers}: --check takes one process; leave one of the two out")


def translate_whole(model: Path, request: TranslateRequest) -> None:
    """The whole input as one text, cut into sentences and put back with its white space, or with its tags."""
    engine, text = request.open(model), input_text(request.source)
    search = search_options(engine.search, request)
    if request.form == "html":
        found = translate_html(engine, text, search, align=ByAttention(model), language=request.language)
    else:
        found = translate_text(engine, text, search, language=request.language)
    with writing(request.output) as out:
        out.write(found)


def said(engine: Engine, lines: Sequence[str], request: TranslateRequest) -> list[str]:
    """The output lines for these input lines."""
    if request.only_text:
        return [one_line(text) for text in engine.write(lines, search_options(engine.search, request))]
    check = partial(check_in, engine) if request.check else None
    return [line for one in translated(engine, lines, request) for line in rendered(one, request, check)]


def translated(engine: Engine, lines: Sequence[str], request: TranslateRequest) -> list[Translation]:
    if request.sample:
        asked = {name: getattr(request, name) for name in ("temperature", "top_k", "top_p")}
        options = checked(SamplingOptions(samples=request.candidates), asked)
        return engine.sample(lines, options, SEED if request.seed is None else request.seed)
    prefixes = None if request.prefix is None else [request.prefix] * len(lines)
    return engine.translate(lines, search_options(engine.search, request), prefixes)


def search_options(own: SearchOptions, request: TranslateRequest) -> SearchOptions:
    """The model's own search with what the user changed; n candidates need a beam at least as wide."""
    width = request.beam or max(own.beam, request.candidates)
    asked = {"beam": width, "n_best": request.candidates, "length_penalty": request.length_penalty}
    return checked(own, asked)


def rendered(translation: Translation, request: TranslateRequest, check: Check | None = None) -> Iterator[str]:
    """`n_best` lines of text, blank ones where the search found fewer, or one line of JSON."""
    if request.mbr:
        translation = agreed(translation, request)
    if request.as_json:
        candidates = [asdict(candidate) for candidate in translation.candidates]
        found = {} if check is None else check(translation)
        yield to_json({"source": translation.source, "text": translation.text, "candidates": candidates, **found})
    else:
        texts = [one_line(candidate.text) for candidate in translation.candidates]
        yield from texts + [""] * (request.n_best - len(texts))


def agreed(translation: Translation, request: TranslateRequest) -> Translation:
    """The `n_best` candidates that agree most with all of them, by minimum Bayes risk."""
    candidates = translation.candidates
    order = by_agreement([candidate.text for candidate in candidates], UTILITIES[request.utility or UTILITY])
    return replace(translation, candidates=tuple(candidates[i] for i in order[: request.n_best]))
