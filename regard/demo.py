"""The demonstration: learn to read dates in dozens of languages, then show scores, examples and attention."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from regard.commands.colours import colour_of
from regard.data.dates import locales, split
from regard.data.pairs import Pair
from regard.engine import TorchEngine, load
from regard.errors import RecipeError, RegardError
from regard.evaluation.scores import Scores, evaluate
from regard.explaining.film import read_film
from regard.explaining.heatmap import terminal
from regard.explaining.page import Contents, Example, Picture, Score, report
from regard.explaining.record import record
from regard.files import write_atomically
from regard.models.interface import parameters
from regard.recipe.folder import FILM, LOG
from regard.report import learning_curve
from regard.request import Request
from regard.run import run
from regard.text.special import BOS, EOS, NAMES
from regard.training.logs import read_log

TRAIN, VALID, TEST = 60_000, 500, 2_000
SETTINGS = (
    "text.kind=characters",
    "text.shared=false",  # the answers need eleven characters: their own vocabulary keeps the output layer small
    "model.width=128",
    "model.heads=4",
    "model.feedforward=512",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.dropout=0.05",
    "model.share_embeddings=false",
    "training.learning_rate=0.002",
    "training.rest_rate=1",  # more was not tried here
    "training.weight_decay=0.01",  # nor here
    "training.ema=0.99",
    "decoding.beam=1",
)
SHOWN = 12  # examples in the table
PICTURED = 3  # sentences with heat maps


def run_demo(out: Path, *, budget: str, seed: int) -> None:
    """Data, training, test, table, heat map, report; the last line says how many dates were read right."""
    if out.exists():
        raise RecipeError(f"{out}: already exists; choose another --out, or remove it")
    console = Console()
    console.print(
        f"Dates in {len(locales())} locales → ISO 8601: {TRAIN:,} to learn from, {TEST:,} unseen to be tested on."
    )
    train, valid, test = split(TRAIN, VALID, TEST, seed)
    for name, pairs in (("train", train), ("valid", valid), ("test", test)):
        for side in ("source", "target"):
            write_atomically(out / "data" / f"{name}.{side}", "".join(f"{getattr(pair, side)}\n" for pair in pairs))
    data, model = out / "data", out / "model"
    request = Request(
        source=data / "train.source",
        target=data / "train.target",
        valid_source=data / "valid.source",
        valid_target=data / "valid.target",
        out=model,
        budget=budget,
        seed=seed,
        settings=SETTINGS,
    )
    try:
        interrupted = run(request).interrupted
    except RegardError:
        shutil.rmtree(out)
        raise
    if interrupted:
        raise KeyboardInterrupt
    examine(load(model), test, out, console)


def examine(engine: TorchEngine, test: Sequence[Pair], out: Path, console: Console) -> None:
    """What the model makes of dates it has never seen: table, heat map, report, and the line that sums it up."""
    outputs = [translation.text for translation in engine.translate([pair.source for pair in test])]
    scores = evaluate(outputs, [pair.target for pair in test])
    rows = examples(test, outputs)
    longest = sorted(rows, key=lambda row: -len(row.source))[:PICTURED]
    pictures = [picture(engine, row.source) for row in longest]
    show(console, rows, pictures[0])
    write_atomically(out / "report.html", report(contents(engine, scores, rows, pictures)))
    console.print(f"\nReport: {out / 'report.html'}\nTry it: echo '3. März 2022' | regard translate {out / 'model'}")
    sys.stdout.write(f"exact match {scores.exact_match:.2f} %\n")


def examples(test: Sequence[Pair], outputs: Sequence[str]) -> list[Example]:
    """Some that are right, spread over the test set, and every kind of mistake first-come."""
    rows = [Example(p.source, p.target, got, p.target == got) for p, got in zip(test, outputs, strict=True)]
    wrong = [row for row in rows if not row.ok][:3]
    right = [row for row in rows if row.ok]
    return [*right[:: max(1, len(right) // SHOWN)][: SHOWN - len(wrong)], *wrong]


def picture(engine: TorchEngine, source: str) -> Picture:
    """Cross-attention of every layer and head while the model writes its answer, replayed exactly."""
    vocabularies = engine.vocabularies
    ids = vocabularies.source.encode(source)
    answer = vocabularies.target.encode(engine.translate([source])[0].text)
    maps = record(engine.model, torch.tensor([[*ids, EOS]]), torch.tensor([[BOS, *answer]]))
    columns = tuple(vocabularies.source.name(i) for i in ids)
    rows = tuple(vocabularies.target.name(i) for i in answer)
    cross = tuple(one for one in maps if one.kind == "cross")
    return Picture(source, (*columns, NAMES[EOS]), (*rows, NAMES[EOS]), cross)


def show(console: Console, rows: Sequence[Example], chosen: Picture) -> None:
    table = Table("written", "means", "read as", "")
    for row in rows:
        table.add_row(row.source, row.expected, row.got, "[green]✓[/]" if row.ok else "[red]✗[/]")
    console.print(table)
    console.print("\nWhere the decoder looks (last layer, mean of its heads): output down, input across.")
    mean = chosen.attentions[-1].weights.mean(0)
    console.file.write(terminal(mean, chosen.columns, chosen.rows, colour_of(console)) + "\n")


def contents(engine: TorchEngine, scores: Scores, rows: Sequence[Example], pictures: Sequence[Picture]) -> Contents:
    return Contents(
        title="Reading dates",
        summary=f"A Transformer that learned to read dates in {len(locales())} locales, from characters alone.",
        facts={
            "parameters": f"{parameters(engine.model):,}",
            "training dates": f"{TRAIN:,}",
            "test dates, all unseen": f"{scores.sentences:,}",
        },
        scores=[
            Score("exact match, %", scores.exact_match),
            Score("chrF", scores.chrf.score, scores.chrf.signature),
        ],
        curve=learning_curve(read_log(engine.folder.path / LOG)),
        film=read_film(engine.folder.path / FILM),
        examples=rows,
        pictures=pictures,
        commands={"read a date": f"echo '3. März 2022' | regard translate {engine.folder.path}"},
    )
