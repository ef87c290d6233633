"""`regard serve`: models over HTTP, until somebody stops it."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.errors import RecipeError
from regard.serving.languages import canonical
from regard.serving.limits import TextLimits
from regard.serving.running import Direction, ServeRequest, direction, run


@dataclass(frozen=True)
class ServeOptions:
    """What a user asks of `regard serve`; none: what is usual."""

    host: str
    port: int
    workers: int | None
    key_file: Path | None
    characters: int | None
    timeout: float | None
    waiting: int | None
    prefix: str
    suggestions: Path | None
    judgements: Path | None
    log_texts: bool
    watch: Path | None
    engine: str
    shortlist: bool
    ask: tuple[str, ...]

    @property
    def limits(self) -> TextLimits:
        own = TextLimits()
        return replace(
            own,
            characters=self.characters or own.characters,
            seconds=self.timeout or own.seconds,
            waiting=self.waiting or own.waiting,
        )


def serve_models(models: Sequence[str], options: ServeOptions) -> None:
    request = ServeRequest(
        models=with_tasks([direction(model) for model in models], options.ask),
        host=options.host,
        port=options.port,
        workers=options.workers or len(os.sched_getaffinity(0)),
        engine=options.engine,
        shortlist=options.shortlist,
        keys=read_keys(options.key_file) if options.key_file else (),
        prefix=checked(options.prefix),
        suggestions=options.suggestions,
        judgements=options.judgements,
        log_texts=options.log_texts,
        watch=options.watch,
        texts=options.limits,
    )
    asyncio.run(run(request, say))


def with_tasks(models: Sequence[Direction], asked: Sequence[str]) -> list[Direction]:
    """Each model with what `--ask` puts before its texts."""
    tasks = dict(map(task_of, asked))
    for source, target in tasks.keys() - {(model.source, model.target) for model in models}:
        raise RecipeError(f"--ask {source}:{target}: no model is served that translates from {source} into {target}")
    return [replace(model, task=tasks.get((model.source, model.target), "")) for model in models]


def task_of(option: str) -> tuple[tuple[str, str], str]:
    """ "en:de=translate English to German: " → the direction, and the text."""
    codes, _, task = option.partition("=")
    source, _, target = codes.partition(":")
    if not (source and target and task.strip()):
        raise RecipeError(f"--ask {option}: expected SOURCE:TARGET=TEXT, such as 'en:fr=translate English to French: '")
    return (canonical(source), canonical(target)), task


def say(address: str) -> None:
    sys.stdout.write(f"serving at {address}\n")
    sys.stdout.flush()


def read_keys(path: Path) -> tuple[str, ...]:
    """Lines that are not blank."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise RecipeError(f"{path}: cannot be read as text; give a file with a key on each line") from None
    found = tuple(line.strip() for line in lines if line.strip())
    if not found:
        raise RecipeError(f"{path}: holds no key; write one on each line, or leave out --key-file")
    return found


def checked(prefix: str) -> str:
    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise RecipeError(f"--prefix {prefix}: expected a path such as /translator")
    return prefix
