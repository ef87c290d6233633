"""`regard backtranslate`: monolingual text and a model of the other direction make parallel text."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.commands.progress import say
from regard.commands.resuming import Work, translate_file
from regard.commands.streams import one_line, refuse_loss, writing
from regard.commands.translate import SEED, TranslateRequest, refuse_unheard
from regard.data.accounts import Account
from regard.data.filters import fault
from regard.data.noise import noised
from regard.data.options import FilterRules
from regard.data.pairs import Pair
from regard.data.readers import read_lines
from regard.errors import DataError, RegardError
from regard.exporting.ctranslate2 import is_exported
from regard.files import digest, manifest, write_atomically
from regard.recipe.folder import open_finished

RULES = FilterRules(drop_identical=True)  # a copy teaches a translator to copy
DECIDES = ("beam", "sample", "temperature", "top_k", "top_p", "seed", "engine", "shortlist")  # what is said
SEARCH = ("beam", "sample", "temperature", "top_k", "top_p", "engine", "workers", "shortlist", "others")


@dataclass(frozen=True)
class BacktranslateRequest:
    """What a user asks of `regard backtranslate`; none: as the model's recipe has it."""

    source: Path
    out: Path
    tag: str | None = None
    noise: bool = False
    beam: int | None = None
    sample: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    engine: str = "torch"
    workers: int | None = None
    shortlist: bool = False
    others: tuple[Path, ...] = ()
    quiet: bool = False

    @property
    def made(self) -> Path:
        """The translations, while they are made."""
        return self.out.with_name(f".{self.out.name}.made")

    @property
    def notes(self) -> Path:
        """What they are made from."""
        return self.out.with_name(f".{self.out.name}.json")

    def search(self) -> TranslateRequest:
        # Noise takes the seed too: only where neither does is it a mistake.
        seed = None if self.noise and not self.sample else self.seed
        return TranslateRequest(**{name: getattr(self, name) for name in SEARCH}, seed=seed)


def backtranslate_file(model: Path, request: BacktranslateRequest) -> Account:
    """Writes `out`: a line translated, a tab, the line itself, for every line that makes a pair worth learning from.

    Lines that could make none are not translated. A tab within a text becomes a blank. The order is kept, and no more
    than a few thousand lines are held at a time. Interrupted, the same call goes on; what it needs for that lies hidden
    beside `out` until that is there. An `out` that is there already is not written over.
    """
    refuse_unheard(request.search())
    refuse_tag(request.tag)
    refuse_loss(request.out, request.source)
    work = Work(model, request.search(), lambda: worth(request.source, Counter()), request.made, request.quiet)
    agree(work, request)
    try:
        translate_file(work)
    except RegardError:
        if not work.partial.exists():  # nothing to go on with
            request.notes.unlink()
        raise
    account = assemble(request)
    forget(request)
    if not request.quiet:
        say(account.line())
    return account


def agree(work: Work, request: BacktranslateRequest) -> None:
    """Notes what the translations are made from; those that were made from something else are not gone on with.

    An `out` that is there is refused, but for the call that wrote it and was stopped before it forgot its notes.
    """
    if not request.source.is_file():
        raise DataError(f"{request.source}: no such file; check the path")
    models = (work.model, *work.search.others)
    for model in models:
        if not is_exported(model):
            open_finished(model)
    search = {name: str(getattr(work.search, name)) for name in DECIDES}
    facts = {"models": [manifest(model) for model in models], "text": digest(request.source), "search": search}
    now = json.dumps(facts, indent=1) + "\n"
    if request.notes.exists() and request.notes.read_text(encoding="utf-8") == now:
        return
    if request.out.exists():
        raise DataError(f"{request.out}: already exists; remove it, or choose another --out")
    for path in (work.whole, work.partial):
        path.unlink(missing_ok=True)
    write_atomically(request.notes, now)


def assemble(request: BacktranslateRequest) -> Account:
    """The translations beside their lines; what makes no pair is left out and counted."""
    dropped: Counter[str] = Counter()
    kept = 0
    with request.made.open(encoding="utf-8", newline="\n") as made, writing(request.out) as out:
        for source, target in zip(made, worth(request.source, dropped), strict=True):
            pair = Pair(flat(source.removesuffix("\n")), flat(target))
            if reason := fault(pair, RULES):
                dropped[reason] += 1
                continue
            out.write(f"{dressed(pair.source, request, kept)}\t{pair.target}\n")
            kept += 1
        account = Account(str(request.source), kept + dropped.total(), kept, dict(dropped))
        if not kept:
            forget(request)
            raise DataError(nothing(account))
    return account


def forget(request: BacktranslateRequest) -> None:
    for path in (request.made, request.notes):
        path.unlink()


def worth(source: Path, dropped: Counter[str]) -> Iterator[str]:
    """The lines that may become half a pair; the others are counted."""
    return usable(read_lines(source, "drop", dropped), dropped)


def usable(lines: Iterator[str], dropped: Counter[str]) -> Iterator[str]:
    """The lines that may become half a pair; the others are counted."""
    alone = RULES.model_copy(update={"drop_identical": False})
    for line in lines:
        if reason := fault(Pair(line, line), alone):
            dropped[reason] += 1
        else:
            yield line


def flat(text: str) -> str:
    return one_line(text).replace("\t", " ")


def dressed(source: str, request: BacktranslateRequest, place: int) -> str:
    """With noise and tag, if they are asked for; the noise is a function of the seed and of the place."""
    if request.noise:
        source = noised(source, random.Random(f"{SEED if request.seed is None else request.seed}/{place}"))
    return source if request.tag is None else f"{request.tag} {source}"


def refuse_tag(tag: str | None) -> None:
    if tag is not None and (len(tag.split()) != 1 or tag != tag.strip()):
        raise DataError(f"--tag {tag!r}: expected one word that no text begins with, for example '<bt>'")


def nothing(account: Account) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in Counter(account.dropped).most_common())
    return f"{account.name}: none of {account.read} lines makes a pair ({reasons}); check text and model"
