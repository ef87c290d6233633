"""Text that takes long to translate: what an interrupted call left behind is not translated again."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from regard.commands.progress import counted, say
from regard.commands.streams import one_line
from regard.commands.translate import TranslateRequest, speaking


@dataclass(frozen=True)
class Work:
    """Lines to translate, the same whenever they are asked for, and the file to be made: a line for each of them."""

    model: Path
    search: TranslateRequest
    lines: Callable[[], Iterator[str]]
    whole: Path
    quiet: bool

    @property
    def partial(self) -> Path:
        return self.whole.with_name(f".{self.whole.name.removeprefix('.')}.part")


def translate_file(work: Work) -> None:
    """Makes the file if it is not there yet, from where an earlier call was interrupted."""
    if work.whole.exists():
        return
    total, done = sum(1 for _ in work.lines()), lines_done(work.partial)
    if not work.quiet:
        say(f"translating {total:,} lines" + (f", {done:,} of which are done" if done else ""))
    lines = islice(work.lines(), done, None)
    with (
        speaking(work.model, work.search, lines, lambda: work.search.open(work.model)) as parts,
        work.partial.open("a", encoding="utf-8", newline="\n") as out,
    ):
        made = chain.from_iterable(parts)
        for line in made if work.quiet else counted(made, total, done=done):
            out.write(f"{one_line(line)}\n")
        out.flush()
        os.fsync(out.fileno())
    work.partial.replace(work.whole)


def lines_done(partial: Path) -> int:
    """Whole lines in the file; half a line at its end is cut off."""
    if not partial.exists():
        return 0
    with closing(partial.open("r+b")) as file:
        count = end = 0
        for line in file:
            if line.endswith(b"\n"):
                count, end = count + 1, end + len(line)
        file.truncate(end)
    return count
