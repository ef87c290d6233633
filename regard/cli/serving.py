"""The command that serves: options in, calls out."""

from typing import Any

import click

from regard.cli.group import ENGINE, FILE, SHORTLIST, regard, serving_parts


@regard.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0 is everywhere.")
@click.option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="0: any free one.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes of each model; default: one for each core.")
@click.option("--key-file", type=FILE, help="Keys, one a line; a request must bring one of them.")
@click.option("--characters", type=click.IntRange(1), help="Of one request, at most; default: 5000.")
@click.option("--timeout", type=click.FloatRange(0.1), help="Seconds until a request gives up; default: 30.")
@click.option("--waiting", type=click.IntRange(1), help="Texts that may wait before others are refused; default: 256.")
@click.option("--prefix", default="", help="Of every path, behind a proxy: /translator.")
@click.option("--suggestions", type=FILE, help="Let people suggest better translations, noted in this file.")
@click.option("--judgements", type=FILE, help="Let people compare two models blind; `regard rank --report` reads it.")
@click.option("--log-texts", is_flag=True, help="Log what people write, too; keys and files never are.")
@click.option("--watch", type=FILE, metavar="RUN", help="Also show how this run learns, at /training/.")
@click.option(
    "--ask",
    multiple=True,
    metavar="CODE:CODE=TEXT",
    help="Put this before every text of a direction: the task, for a model of several. Repeatable.",
)
@ENGINE
@SHORTLIST
def serve(models: tuple[str, ...], **options: Any) -> None:
    """Serve models over HTTP: LibreTranslate's API, and a page.

    \b
      regard serve models/en-de                              # http://127.0.0.1:5000
      regard serve models/en-de models/de-en --workers 2
      regard serve en:de=models/mine --port 8080 --key-file keys.txt
      regard serve en:de=models/small en:de=models/large --judgements judged.jsonl
      regard serve en:de=models/t5 --ask en:de="translate English to German: "
      curl -d q="A man rides a bike." -d source=en -d target=de http://127.0.0.1:5000/translate
    Ctrl-C or SIGTERM: nothing new is taken, what was asked is answered.
    """
    with serving_parts():
        from regard.serving.command import ServeOptions, serve_models

    serve_models(models, ServeOptions(**options))
