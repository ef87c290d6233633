"""The command line: options in, calls out. Nothing here computes, and torch is imported only by commands that do."""

import os
import sys

import click

from regard.cli import (  # noqa: F401  (commands join the group as their module is read)
    ablating,
    aligning,
    comparing,
    explaining,
    making,
    parsing,
    publishing,
    reading,
    seeing,
    serving,
    studying,
    teaching,
    using,
    watching,
)
from regard.cli.group import regard
from regard.errors import RegardError


def main() -> int:
    """0 done, 1 the input or the recipe is wrong, 2 usage, 130 interrupted; a mistake is one line on stderr."""
    arguments = sys.argv[1:] or ["--help"]
    debug = arguments[0] == "--debug"
    try:
        # Not `regard.main`, which has its own answers to an interrupt and to a closed pipe.
        with regard.make_context("regard", arguments) as context:
            regard.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        return complain(usage(error), error.exit_code)
    except KeyboardInterrupt:
        return complain("interrupted", 130)
    except BrokenPipeError:
        # The reader went away (`| head`): nothing left to say, now or when Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (RegardError, OSError) as error:
        if debug:
            raise
        return complain(reason(error), 1)
    return 0


def complain(message: str, code: int) -> int:
    """The message as one line on stderr, whatever is in it; returns the exit code."""
    click.echo(f"regard: {' '.join(message.splitlines())}", err=True)
    return code


def usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return error.format_message().rstrip(".") + (f"; see {context.command_path} --help" if context else "")


def reason(error: RegardError | OSError) -> str:
    if isinstance(error, RegardError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
