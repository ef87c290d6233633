"""What lifts quality on little text: one lever at a time pulled in the default Transformer, judged by the dev set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.explaining.bars import Bar
from regard.explaining.study_page import Bars, Contents, Table
from regard.studies.report import Report, TestSet, by_name, equal, row_figures
from regard.studies.rows import Plan, Result, Row

BASE = "base"
NOISE = 1.0  # BLEU by which two runs of one recipe may differ on a thousand sentences


@dataclass(frozen=True)
class Lever:
    """One thing that is changed, and what it is in words."""

    name: str
    said: str
    settings: tuple[str, ...]

    @property
    def row(self) -> Row:
        return Row(self.name, "transformer", self.settings)


LEVERS = (
    Lever("vocabulary-2000", "a smaller vocabulary", ("text.size=2000",)),
    Lever("vocabulary-8000", "a larger vocabulary", ("text.size=8000",)),
    Lever("sinusoids", "added positions instead of rotary ones", ("model.positions=sinusoid",)),
    Lever("wider", "a third more width", ("model.width=256", "model.feedforward=1024")),
    Lever(
        "narrower",
        "two thirds of the width, a third of the feed-forward width, a layer more",
        ("model.width=128", "model.feedforward=256", "model.encoder_layers=4", "model.decoder_layers=4"),
    ),
    Lever("subword-sampling", "other subwords in every epoch", ("text.dropout=0.1",)),
    Lever("dropout-0.1", "dropout 0.1", ("model.dropout=0.1",)),
    Lever("dropout-0.3", "dropout 0.3", ("model.dropout=0.3",)),
    Lever("r-drop", "two passes that must agree", ("loss.rdrop=5",)),
    Lever("word-dropout", "holes in both texts", ("loss.source_word_dropout=0.1", "loss.target_word_dropout=0.1")),
    Lever("last-weights", "the last weights, no average", ("training.ema=0",)),
    Lever("mean-of-5", "the mean of five checkpoints", ("training.ema=0", "training.average=5")),
    Lever("cosine", "a cosine instead of a line down to zero", ("training.schedule=cosine",)),
    Lever("adamw", "AdamW instead of Muon", ("training.optimiser=adamw", "training.learning_rate=0.003")),
    Lever("rate-0.003", "a lower learning rate", ("training.learning_rate=0.003",)),
    Lever("one-rate", "one rate for matrices and tables of words", ("training.rest_rate=1",)),
    Lever(
        "three-tables", "source, target and output not tied", ("model.share_embeddings=false", "model.tie_output=false")
    ),
    Lever("batch-1000", "smaller batches", ("data.batch_tokens=1000",)),
    Lever("batch-4000", "larger batches", ("data.batch_tokens=4000",)),
    Lever(
        "deep-shallow", "six layers that read, one that writes", ("model.encoder_layers=6", "model.decoder_layers=1")
    ),
)
ROWS = (Row(BASE, "transformer"), *(lever.row for lever in LEVERS))


def report(results: Sequence[Result], _test: TestSet, plan: Plan, _rows: Path) -> Report:
    """Rows by what they add to the default on the dev set. What the test set says of them is left aside."""
    found = by_name(results)
    base = found.get(BASE)
    gains = {name: result.dev_bleu - base.dev_bleu for name, result in found.items()} if base else {}
    contents = Contents(
        "What lifts quality",
        "Each row changes one thing in the recipe that this much text gets by default, and has the same time.",
        findings(gains),
        (pulled(found, gains),),
        (picture(gains),) if len(gains) > 1 else (),
        (
            equal(plan),
            f"The dev set was translated with beam {results[0].beam}. Rows are judged by dev BLEU alone; perplexity "
            "is per token, and compares only rows with one vocabulary. "
            f"Each is one run with one seed: differences below {NOISE:g} may be chance. What is against learning by "
            "heart pays in long runs, and may cost in short ones.",
        ),
    )
    figures = {f"{name}: gain": gain for name, gain in gains.items() if name != BASE}
    unseen = {name: value for name, value in row_figures(results).items() if ": test" not in name}
    return Report(figures | unseen, contents, unsaid=("outputs", "test_bleu", "test_chrf"))


def findings(gains: Mapping[str, float]) -> tuple[str, ...]:
    better = sorted((name for name in gains if gains[name] >= NOISE), key=lambda name: -gains[name])
    if not gains:
        return ()
    if not better:
        return (f"No lever adds {NOISE:g} BLEU or more to the default.",)
    return tuple(f"{name} adds {gains[name]:.2f} BLEU to the default." for name in better)


def picture(gains: Mapping[str, float]) -> Bars:
    """Best first, without the default itself."""
    ordered = sorted((name for name in gains if name != BASE), key=lambda name: -gains[name])
    return Bars("dev BLEU that each adds", tuple(Bar(name, gains[name]) for name in ordered))


def pulled(found: Mapping[str, Result], gains: Mapping[str, float]) -> Table:
    """Best first."""
    words = {lever.name: f": {lever.said}" for lever in LEVERS} | {BASE: ": what this much text gets by default"}
    ordered = sorted(found.values(), key=lambda result: -result.dev_bleu)
    cells = tuple(
        (
            f"{result.name}{words[result.name]}",
            f"{result.dev_bleu:.2f}",
            f"{gains[result.name]:+.2f}" if gains else "",
            f"{result.dev_perplexity:.2f}",
            f"{result.steps:,}",
            f"{result.epochs:.1f}",
            f"{result.train_minutes:.1f}",
        )
        for result in ordered
    )
    heads = ("", "dev BLEU", "gain", "dev PPL", "steps", "epochs", "minutes")
    return Table("The levers, best first", heads, cells)
