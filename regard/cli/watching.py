"""The command that watches a run: options in, calls out."""

from pathlib import Path

import click

from regard.cli.group import FILE, regard, serving_parts


@regard.command()
@click.argument("run", type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0 is everywhere.")
@click.option("--port", type=click.IntRange(0, 65535), default=5001, show_default=True, help="0: any free one.")
def watch(run: Path, host: str, port: int) -> None:
    """Watch a run as it learns, in a browser: curves, what it looks at, the time that is left.

    RUN is the directory that `regard train --out` names: while the run goes on, when it was interrupted, at its end.

    \b
      regard train --source train.en --target train.de --out models/en-de --budget 20m &
      regard watch models/en-de                              # http://127.0.0.1:5001
      regard watch models/en-de --port 8081
    It only reads: the run does not notice. Ctrl-C ends it.
    """
    with serving_parts():
        from regard.serving.watching import watch_run

    watch_run(run, host, port)
