"""`regard rank`: a person says which of two outputs is better, until all are sorted; then the ranking."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from regard.commands.streams import to_json
from regard.commands.wrapping import harmless, labelled
from regard.data.readers import read_lines
from regard.errors import DataError
from regard.evaluation.agreement import Agreement, agreement
from regard.evaluation.judgements import (
    Judgement,
    Verdict,
    answer,
    read_judgements,
    write_judgements,
)
from regard.evaluation.questions import Next, Sheet, next_question, sample
from regard.evaluation.ranking import Ranking, rank

KEYS: Mapping[str, Verdict] = {"1": "left", "2": "right", "=": "equal"}
Ended = Literal["finished", "left"]
ROOM = 19  # columns for a name, so that the table fits a terminal


@dataclass(frozen=True)
class RankRequest:
    """What a user asks of `regard rank`. A system is a file of outputs, or name=file."""

    systems: tuple[str, ...]
    source: Path
    out: Path
    reference: Path | None = None
    sentences: int = 50
    seed: int = 1
    judge: str = ""
    as_json: bool = False


def report(files: Sequence[Path], *, as_json: bool) -> None:
    """The ranking that the judgements of all files give. Who gave no name is another person in every file."""
    judged = [(one, f"file {number}") for number, path in enumerate(files, 1) for one in read_judgements(path)]
    show([one if one.judge else replace(one, judge=nameless) for one, nameless in judged], as_json=as_json)


def rank_systems(request: RankRequest) -> None:
    """Ask until everything is sorted or the person leaves; every answer is on disk before the next question.

    Questions go to stderr, so that stdout has the ranking alone. It is shown at the end only: whoever goes on later
    should not know who leads.
    """
    sheets, references = read_sheets(request)
    judgements = read_judgements(request.out) if request.out.exists() else []
    check(judgements, sheets, request.out)
    order = sample(len(sheets), len(sheets), request.seed)
    check_order(request, judgements, order)
    session = Session(request, [sheets[i] for i in order[: request.sentences]], references, judgements)
    if session.run() == "finished":
        show(session.judgements, as_json=request.as_json)


# ---------------------------------------------------------------- reading
def read_sheets(request: RankRequest) -> tuple[list[Sheet], list[str] | None]:
    """One sheet for each source line, and the references where they are given. Blanks at the ends do not matter."""
    files = named(request.systems)
    sources = list(read_lines(request.source))
    outputs = {name: parallel(path, request.source, len(sources)) for name, path in files.items()}
    references = parallel(request.reference, request.source, len(sources)) if request.reference else None
    sheets = [
        Sheet(i + 1, source, {name: lines[i] for name, lines in outputs.items()}) for i, source in enumerate(sources)
    ]
    return sheets, references


def named(systems: Sequence[str]) -> dict[str, Path]:
    """Name → file. A file without a name is called by its own."""
    found: dict[str, Path] = {}
    for argument in systems:
        name, sign, file = argument.partition("=")
        path = Path(file)
        if not sign or Path(argument).exists():
            path, name = Path(argument), Path(argument).name
        if not name:
            raise DataError(f"{argument}: a system without a name; write name=FILE or FILE alone")
        if name in found:
            raise DataError(f"{argument}: a second system is called {name!r}; give each a name, as in small={path}")
        for other, known in found.items():
            if known.resolve() == path.resolve():
                raise DataError(f"{path}: given twice, as {other!r} and {name!r}; name different files")
        found[name] = path
    if len(found) < 2:
        raise DataError(f"rank: found {len(found)} system, expected at least 2 files of outputs; name another")
    return found


def parallel(path: Path, source: Path, count: int) -> list[str]:
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give outputs: regard translate {path} < {source} > FILE")
    lines = [harmless(line) for line in read_lines(path)]
    if len(lines) != count:
        raise DataError(f"{path} has {len(lines)} lines, {source} has {count}; give one line for each source")
    return lines


def check(judgements: Sequence[Judgement], sheets: Sequence[Sheet], out: Path) -> None:
    """Judgements of other texts than those that are here would rank nothing that exists."""
    for line, one in enumerate(judgements, 1):
        here = sheets[one.sentence - 1] if one.sentence <= len(sheets) else None
        if here is not None and (newcomer := unnamed(one, here)):
            raise DataError(
                f"{out}, judgement {line}: was made without {newcomer!r}, whose output it judges too; "
                "give the systems that it was begun with, or another --out"
            )
        for side in (one.left, one.right):
            for system in side.systems:
                if here is None or here.outputs.get(system, side.text) != side.text:
                    raise DataError(
                        f"{out}, judgement {line}: is about another output of {system!r} for sentence {one.sentence}; "
                        "give the files that it was begun with, or another --out"
                    )
        if here is not None and here.source != one.source:
            raise DataError(
                f"{out}, judgement {line}: is about another source for sentence {one.sentence}; "
                "give the --source that it was begun with, or another --out"
            )


def check_order(request: RankRequest, judgements: Sequence[Judgement], order: Sequence[int]) -> None:
    """A judge takes the sentences in the order that the seed draws: with another seed, some would be left over."""
    judged = {one.sentence - 1 for one in judgements if one.judge == request.judge}
    if judged != set(order[: len(judged)]):
        raise DataError(
            f"{request.out}: was begun with other sentences than --seed {request.seed} draws; "
            "give the seed that it was begun with, or another --out"
        )


def unnamed(one: Judgement, here: Sheet) -> str | None:
    """A system that wrote a judged text and is not named with it: it would not be asked about, and not be counted."""
    known = {*one.left.systems, *one.right.systems}
    judged = (one.left.text, one.right.text)
    return next((name for name, text in here.outputs.items() if text in judged and name not in known), None)


# ---------------------------------------------------------------- asking
class Session:
    """One sitting of one judge. All that it knows is the list of judgements, which the file has too."""

    def __init__(
        self,
        request: RankRequest,
        sheets: Sequence[Sheet],
        references: Sequence[str] | None,
        judgements: Sequence[Judgement],
    ) -> None:
        self.request, self.sheets, self.references = request, sheets, references
        self.judgements = list(judgements)

    def run(self) -> Ended:
        request = self.request
        tell(f"{many(len(self.sheets), 'sentence')}. Which output translates better? Each answer is saved at once.")
        while (upcoming := self.upcoming()) or not settled():
            if upcoming is None:
                self.undo()
                continue
            if upcoming.question.idle:
                self.add(answer(upcoming.question, "equal", request.judge))
                continue
            self.show(upcoming)
            match ask():
                case "q":
                    left = many(upcoming.at_most, "question")
                    tell(f"Saved in {request.out}. The same command goes on, at most {left}.")
                    return "left"
                case "u":
                    self.undo()
                case key:
                    self.add(answer(upcoming.question, KEYS[key], request.judge))
        tell("")
        return "finished"

    def upcoming(self) -> Next | None:
        return next_question(self.sheets, self.judgements, self.request.judge, self.request.seed)

    def show(self, upcoming: Next) -> None:
        question = upcoming.question
        at_most = many(upcoming.at_most, "more question")
        tell(f"\n── sentence {upcoming.place + 1} of {len(self.sheets)}, at most {at_most} ──")
        tell(labelled("source", question.source, room=11))
        if self.references:
            tell(labelled("reference", self.references[question.sentence - 1], room=11))
        tell("")
        for key, side in (("1", question.left), ("2", question.right)):
            tell(labelled(f"    {key}", side.text, room=11))

    def add(self, judgement: Judgement) -> None:
        self.judgements.append(judgement)
        write_judgements(self.request.out, self.judgements)

    def undo(self) -> None:
        """Takes back the last answer of this judge, and the ties after it that nobody was asked about."""
        own = [i for i, one in enumerate(self.judgements) if one.judge == self.request.judge]
        asked = [i for i in own if not self.judgements[i].idle]
        if not asked:
            tell("There is nothing to take back.")
            return
        gone = {i for i in own if i >= asked[-1]}
        self.judgements = [one for i, one in enumerate(self.judgements) if i not in gone]
        write_judgements(self.request.out, self.judgements)


def ask() -> str:
    """1, 2, =, u or q; the end of the input is q."""
    while True:
        sys.stderr.write("\nbetter: 1 or 2, = equal, u undo, q save and leave > ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        key = line.strip().lower()
        if not line:
            tell("")
            return "q"
        if key in (*KEYS, "u", "q"):
            return key
        tell(f"Found {harmless(key)!r}; type 1, 2, =, u or q, then Enter.")


def settled() -> bool:
    """Asked when everything is sorted: is the last answer what was meant? The end of the input says yes."""
    sys.stderr.write("\nall are sorted: Enter shows the ranking, u takes back the last answer > ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() != "u"


def tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


# ---------------------------------------------------------------- the ranking
def show(judgements: Sequence[Judgement], *, as_json: bool) -> None:
    found, agreed = rank(judgements), agreement(judgements)
    if as_json:
        sys.stdout.write(to_json({**found.to_json(), "agreement": agreed.to_json() if agreed else None}) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in table(found, agreed)))


def table(found: Ranking, agreed: Agreement | None) -> Iterator[str]:
    """The ranking for people, best first."""
    names = labels([place.system for place in found.places])
    room = max(6, *map(len, names.values()))
    by = many(found.judges, "judge")
    yield f"{many(found.sentences, 'sentence')}, {many(found.questions, 'question')} answered by {by}"
    yield ""
    yield (
        f"place {'system':<{room}}{'strength':>9}  {'95 % interval':<15}"
        f"{'better':>7}{'equal':>6}{'worse':>6}{'preferred':>10}"
    )
    for one in found.places:
        place = f"{one.first}" if one.first == one.last else f"{one.first}–{one.last}"
        interval = f"{one.low:+.2f} to {one.high:+.2f}"
        counts = f"{one.better:>7}{one.equal:>6}{one.worse:>6}{one.preferred:>8.0f} %"
        strength = round(one.strength, 2) + 0.0  # no -0.00
        yield f"{place:<6}{names[one.system]:<{room}}{strength:>+9.2f}  {interval:<15}{counts}"
    yield ""
    yield "strength: log-odds of being preferred to an average system (Bradley–Terry)"
    if agreed:
        shares = f"agree in {agreed.same:.0f} % of {many(agreed.pairs, 'case')}; by chance {agreed.chance:.0f} % would"
        yield labelled("", f"two people about the same two outputs {shares}{kappa(agreed)}", room=0)


def kappa(agreed: Agreement) -> str:
    return "" if agreed.kappa is None else f" (kappa {agreed.kappa:.2f})"


def many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def labels(names: Sequence[str]) -> dict[str, str]:
    """What the table calls each system: a long name loses its middle, but where two would look alike, none does."""
    whole = [harmless(name) for name in names]
    for shown in ([shortened(name) for name in whole], whole):
        if len(set(shown)) == len(names):
            return dict(zip(names, shown, strict=True))
    return {name: repr(name) for name in names}  # shows blanks and control characters, which `harmless` makes equal


def shortened(name: str) -> str:
    half = ROOM // 2
    return name if len(name) <= ROOM else f"{name[:half]}…{name[-half:]}"
