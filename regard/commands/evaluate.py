"""`regard evaluate`: translate a test set and score it."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.commands.streams import refuse_loss, to_json, write_lines
from regard.commands.translate import TranslateRequest, refuse_unheard, speaking
from regard.data.readers import read_parallel
from regard.decoding.consensus import UtilityName
from regard.evaluation.by_length import Bucket, table
from regard.evaluation.by_length import by_length as buckets
from regard.evaluation.scores import Scores, evaluate
from regard.layers.loss import perplexity

# What decides the translations.
SEARCH = (
    *("ask", "beam", "engine", "workers", "shortlist", "others", "mbr", "utility"),
    *("sample", "temperature", "top_k", "top_p", "seed"),
)


@dataclass(frozen=True)
class EvaluateRequest:
    """What a user asks of `regard evaluate`; none: as the model's recipe has it."""

    source: Path
    target: Path
    ask: str = ""
    beam: int | None = None
    output: Path | None = None
    by_length: bool = False
    as_json: bool = False
    engine: str = "torch"
    workers: int | None = None
    shortlist: bool = False
    others: tuple[Path, ...] = ()
    mbr: int | None = None
    utility: UtilityName | None = None
    sample: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    def search(self) -> TranslateRequest:
        return TranslateRequest(**{name: getattr(self, name) for name in SEARCH})


def evaluate_files(model: Path, request: EvaluateRequest) -> None:
    """Translate, score, show; the seconds are those of translation alone."""
    search = request.search()
    refuse_loss(request.output, request.source, request.target)
    pairs = [replace(pair, source=search.asked(pair.source)) for pair in read_parallel(request.source, request.target)]
    refuse_unheard(search)
    engine = search.open(model)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    with speaking(model, search, iter(sources), lambda: engine) as parts:
        began = time.perf_counter()
        outputs = [line for part in parts for line in part]
        seconds = time.perf_counter() - began
    if request.output:
        write_lines(request.output, outputs)
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
