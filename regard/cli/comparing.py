"""Commands that set systems against each other: options in, calls out."""

from pathlib import Path
from typing import Any

import click

from regard.cli.group import FILE, regard


@regard.command()
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--source", type=FILE, required=True, help="Text to translate.")
@click.option("--target", type=FILE, required=True, help="Its reference translation.")
@click.option("--out", type=FILE, help="Also write a page of HTML here.")
@click.option(
    "--metric",
    "metrics",
    type=click.Choice(["bleu", "chrf", "ter"]),
    multiple=True,
    help="Only this score; repeatable. Default: all three.",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Sentences to show for each side, those that differ most.",
)
@click.option(
    "--beam", type=click.IntRange(1, 64), help="Of models: hypotheses kept in parallel. Default: as each recipe has it."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def compare(a: Path, b: Path, **options: Any) -> None:
    """Which of two systems is better, and is that more than chance?

    A and B are model directories, or files of outputs, one line for each source line.

    \b
      regard compare models/small models/large --source test.en --target test.de --out compare.html
      regard compare outputs.old outputs.new --source test.en --target test.de
    """
    from regard.commands.compare import CompareRequest, compare_systems

    compare_systems(a, b, CompareRequest(**options))


def typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


@regard.command()
@click.argument("systems", nargs=-1, metavar="[NAME=]OUTPUTS...")
@click.option("--source", type=FILE, help="Text that was translated.")
@click.option("--reference", type=FILE, help="Its reference translation, to be shown too.")
@click.option("--out", type=FILE, help="Judgements, one JSON object a line; where they are there already, go on.")
@click.option(
    "--sentences",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many to judge, drawn at random.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the drawing; the same for every judge.")
@click.option("--judge", default="", help="Your name, where several people judge.")
@click.option(
    "--report", "reports", type=FILE, multiple=True, help="Ask nothing: the ranking of this file; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="The ranking as one JSON object.")
@click.pass_context
def rank(
    context: click.Context, /, systems: tuple[str, ...], reports: tuple[Path, ...], as_json: bool, **options: Any
) -> None:
    """Sort systems by what a person prefers: two outputs at a time, without names, in few questions.

    \b
      regard rank rnn=rnn.de attention=att.de transformer=tf.de --source test.en --out judgements.jsonl
      regard rank --report judgements.jsonl
    Leave with q whenever you like; the same command goes on.
    """
    if reports:
        given = ["systems"] if systems else [f"--{name}" for name in options if typed(context, name)]
        if given:
            raise click.UsageError(f"--report asks nothing and takes no {given[0]}; leave one of them out", context)
        from regard.commands.rank import report

        report(reports, as_json=as_json)
        return
    if not systems or options["source"] is None or options["out"] is None:
        raise click.UsageError(
            "give the outputs of at least two systems, --source and --out; or --report FILE", context
        )
    from regard.commands.rank import RankRequest, rank_systems

    rank_systems(RankRequest(systems=systems, as_json=as_json, **options))
