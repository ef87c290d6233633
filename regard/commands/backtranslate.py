"""`regard backtranslate`: monolingual text and a model of the other direction make parallel text."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, tee
from pathlib import Path

from regard.commands.progress import counted, say
from regard.commands.streams import one_line, writing
from regard.commands.translate import SEED, TranslateRequest, refuse_unheard, speaking
from regard.data.accounts import Account
from regard.data.filters import fault
from regard.data.noise import noised
from regard.data.options import FilterRules
from regard.data.pairs import Pair
from regard.data.readers import read_lines
from regard.errors import DataError

RULES = FilterRules(drop_identical=True)  # a copy teaches a translator to copy
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

    def search(self) -> TranslateRequest:
        # Noise takes the seed too: only where neither does is it a mistake.
        seed = None if self.noise and not self.sample else self.seed
        return TranslateRequest(**{name: getattr(self, name) for name in SEARCH}, seed=seed)


def backtranslate_file(model: Path, request: BacktranslateRequest) -> Account:
    """Writes `out`: a line translated, a tab, the line itself, for every line that makes a pair worth learning from.

    Lines that could make none are not translated. A tab within a text becomes a blank. The order is kept, and no more
    than a few thousand lines are held at a time.
    """
    refuse_unheard(request.search())
    refuse_tag(request.tag)
    if request.out.resolve() == request.source.resolve():
        raise DataError(f"{request.out}: is the text to translate, which would be lost; choose another --out")
    dropped: Counter[str] = Counter()
    targets, sources = tee(usable(read_lines(request.source, "drop", dropped), dropped))
    with ExitStack() as stack:
        speak = speaking(model, request.search(), sources, lambda: request.search().open(model))
        made = chain.from_iterable(stack.enter_context(speak))
        pairs = (Pair(flat(source), flat(target)) for source, target in zip(made, targets, strict=True))
        out, kept = stack.enter_context(writing(request.out)), 0
        for pair in pairs if request.quiet else counted(pairs, None):
            if reason := fault(pair, RULES):
                dropped[reason] += 1
                continue
            out.write(f"{dressed(pair.source, request, kept)}\t{pair.target}\n")
            kept += 1
        account = Account(str(request.source), kept + dropped.total(), kept, dict(dropped))
        refuse_nothing(account)
    if not request.quiet:
        say(account.line())
    return account


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


def refuse_nothing(account: Account) -> None:
    if not account.kept:
        reasons = ", ".join(f"{reason} {count}" for reason, count in Counter(account.dropped).most_common())
        raise DataError(f"{account.name}: none of {account.read} lines makes a pair ({reasons}); check text and model")
