"""Commands that use one model: options in, calls out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from regard.cli.group import ENGINE, FILE, SHORTLIST, WORKERS, large_import, regard

Command = Callable[..., None]
TOGETHER = click.option(
    "--with",
    "others",
    type=FILE,
    multiple=True,
    metavar="MODEL",
    help="Another model of the same vocabulary: all speak together, by the mean of their probabilities; repeatable.",
)
CONSENSUS = (
    click.option("--mbr", type=click.IntRange(min=2), metavar="N", help="Of N candidates, the one that others back."),
    click.option(
        "--utility", type=click.Choice(["chrf", "bleu"]), help="With --mbr: how alike two are; chrf unless you say."
    ),
)
ASK = click.option(
    "--ask", default="", help='Put before every input, such as "translate English to German: ": a task of several.'
)
KEEPING = (
    click.option(
        "--glossary", type=FILE, help="A file of terms: source, tab, target. Where one occurs, so does the other."
    ),
    click.option("--keep", multiple=True, metavar="TERM", help="A term that is not translated; repeatable."),
    click.option(
        "--keep-placeholders/--no-keep-placeholders",
        default=True,
        show_default=True,
        help="Never lose or change %s, {name}, tags, URLs, e-mail addresses, or numbers with units.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["lines", "text", "html"]),
        default="lines",
        show_default=True,
        help="lines: a line in, a line out. text, html: one text, translated sentence by sentence, its shape kept.",
    ),
    click.option("--language", metavar="CODE", help="With --format text or html: the source language, for example en."),
)
DRAWING = (
    click.option("--sample", is_flag=True, help="Draw outputs at random instead of searching for the best."),
    click.option("--temperature", type=float, help="With --sample: below 1 is safer."),
    click.option("--top-k", type=int, help="With --sample: only the k likeliest tokens."),
    click.option("--top-p", type=float, help="With --sample: only the likeliest tokens of this total mass."),
    click.option("--seed", type=click.IntRange(min=0), help="With --sample: the same seed and line, the same draws."),
)


def each(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@regard.command()
@click.argument("model", type=FILE)
@click.option("--input", "source", type=FILE, help="Read this file instead of stdin.")
@click.option("--output", type=FILE, help="Write this file instead of stdout.")
@click.option("--beam", type=click.IntRange(1, 64), help="Hypotheses kept in parallel; 1 is greedy.")
@click.option(
    "--n-best", type=click.IntRange(1, 64), default=1, show_default=True, help="Output lines for each input line."
)
@click.option("--length-penalty", type=float, help="Scores are log p / length^penalty.")
@ASK
@click.option("--prefix", help="Every output begins with this text.")
@each(*DRAWING)
@TOGETHER
@each(*CONSENSUS)
@each(*KEEPING)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with scores and tokens.")
@click.option(
    "--check",
    is_flag=True,
    help="With --json: what is wrong with each output, as far as the model can tell: it hardly depends on its source, "
    "repeats itself, leaves words out, or is improbable.",
)
@ENGINE
@WORKERS
@SHORTLIST
def translate(model: Path, **options: Any) -> None:
    """Translate stdin to stdout, line by line, order kept.

    \b
      regard translate models/en-de < in.txt > out.txt
      echo "A man rides a bike." | regard translate models/en-de --beam 8 --n-best 3 --json
      regard translate models/seed1 --with models/seed2 --with models/seed3 < in.txt > out.txt
      regard translate models/en-de --glossary terms.tsv --keep Regard < in.txt > out.txt
      regard translate models/en-de --format html < page.en.html > page.de.html
      regard translate models/en-de --json --check < in.txt > out.jsonl
    """
    with large_import():
        from regard.commands.translate import TranslateRequest, translate_lines

    translate_lines(model, TranslateRequest(**options))


@regard.command()
@click.argument("model", type=FILE)
@click.option("--source", type=FILE, required=True, help="Text to translate.")
@click.option("--target", type=FILE, required=True, help="Its reference translation.")
@ASK
@click.option("--beam", type=click.IntRange(1, 64), help="Hypotheses kept in parallel; 1 is greedy.")
@click.option("--output", type=FILE, help="Also write the translations here.")
@each(*DRAWING)
@TOGETHER
@each(*CONSENSUS)
@click.option("--by-length", is_flag=True, help="Also show quality by source length.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@ENGINE
@WORKERS
@SHORTLIST
def evaluate(model: Path, **options: Any) -> None:
    """Translate a test set and score it: BLEU, chrF, TER with signatures, exact match, perplexity."""
    with large_import():
        from regard.commands.evaluate import EvaluateRequest, evaluate_files

    evaluate_files(model, EvaluateRequest(**options))


@regard.command()
@click.argument("model", type=FILE)
@click.option("--source", type=FILE, help="Source sentences.")
@click.option("--target", type=FILE, help="Their given translations.")
@click.option("--text", type=FILE, help="For a language model: a text, instead of pairs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def score(model: Path, source: Path | None, target: Path | None, text: Path | None, as_json: bool) -> None:
    """log p of each given pair, one number a line; or how well a language model predicts a text.

    \b
      regard score models/en-de --source a.en --target a.de
      regard score models/bard --text unseen.txt              # perplexity, bits per character
    """
    from regard.commands.score import score_files, score_text

    if text is not None and source is None and target is None:
        score_text(model, text, as_json=as_json)
    elif text is None and source is not None and target is not None:
        score_files(model, source, target, as_json=as_json)
    else:
        raise click.UsageError("Give --source and --target, or --text alone")


@regard.command()
@click.argument("model", type=FILE)
@click.option("--prompt", default="", help="The text to go on from; the beginning of a document when not given.")
@click.option("--tokens", type=click.IntRange(1, 100_000), default=200, show_default=True, help="At most this many.")
@click.option("--samples", type=click.IntRange(1, 1000), default=1, show_default=True, help="Texts to write.")
@click.option("--temperature", type=float, help="Below 1 is safer, above 1 bolder.")
@click.option("--top-k", type=int, help="Only the k likeliest tokens; 1 is greedy.")
@click.option("--top-p", type=float, help="Only the likeliest tokens of this total mass.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The same seed, the same text.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a sample, instead of text as it is drawn.")
def generate(model: Path, **options: Any) -> None:
    """Write on from a prompt with a language model, word by word as they are drawn.

    \b
      regard train --text shakespeare.txt --out models/bard --budget 15m
      regard generate models/bard --prompt "ROMEO:" --tokens 300 --temperature 0.8
    """
    with large_import():
        from regard.commands.generate import GenerateRequest, generate_texts

    generate_texts(model, GenerateRequest(**options))


@regard.command()
@click.argument("model", type=FILE)
@click.option(
    "--to", type=click.Choice(["ctranslate2", "argos", "transformers"]), required=True, help="What is to read it."
)
@click.option("--out", type=FILE, required=True, help="The directory (argos: the file) to make.")
@click.option(
    "--quantise",
    type=click.Choice(["float32", "float16", "int16", "int8"]),
    default="float32",
    show_default=True,
    help="How weights are stored; int8 is a quarter of the size.",
)
@click.option("--from-code", metavar="CODE", help="With --to argos: the source language, for example en.")
@click.option("--to-code", metavar="CODE", help="With --to argos: the target language, for example de.")
def export(model: Path, **options: Any) -> None:
    """Write a model for CTranslate2, for Argos Translate and LibreTranslate, or in the layout of transformers.

    \b
      regard export models/en-de --to ctranslate2 --out models/en-de-int8 --quantise int8
      regard translate models/en-de-int8 --engine ctranslate2 < in.txt > out.txt
      regard export models/en-de --to argos --from-code en --to-code de --out en_de.argosmodel
      regard export models/gpt2 --to transformers --out checkpoints/gpt2
    """
    from regard.commands.export import ExportRequest, export_model

    export_model(model, ExportRequest(**options))


@regard.command()
@click.argument("model", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def inspect(model: Path, as_json: bool) -> None:
    """What is in a model directory: sizes, vocabulary, recipe, scores, files and their checksums."""
    from regard.commands.inspect import inspect_model

    inspect_model(model, as_json=as_json)
