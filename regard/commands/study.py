"""`regard study`: a table of the lectures again, at our size, with its page."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from regard.commands.progress import say
from regard.errors import RecipeError
from regard.request import option
from regard.studies.rows import BUDGET, MULTI30K, Plan, Texts
from regard.studies.study import Asked, conduct
from regard.workers import cores

FILES = tuple(f.name for f in fields(Texts))
THREADS = "training.threads"


@dataclass(frozen=True)
class StudyRequest:
    """What a user asks of `regard study`. No files: Multi30k, English to German."""

    out: Path
    rows: tuple[str, ...] = ()
    source: Path | None = None
    target: Path | None = None
    valid_source: Path | None = None
    valid_target: Path | None = None
    test_source: Path | None = None
    test_target: Path | None = None
    budget: str | None = None
    steps: int | None = None
    seed: int | None = None
    settings: tuple[str, ...] = ()
    quiet: bool = False
    at_once: int = 1
    notes: tuple[str, ...] = ()

    def texts(self) -> Texts:
        given: dict[str, Any] = {name: getattr(self, name) for name in FILES}
        missing = [option(name) for name, path in given.items() if path is None]
        if len(missing) == len(given):
            return MULTI30K
        if missing:
            raise RecipeError(
                f"study: text of your own needs files to learn from, to choose by and to be tested on; "
                f"add {', '.join(missing)}"
            )
        return Texts(**given)

    def plan(self) -> Plan:
        if self.budget and self.steps:
            raise RecipeError(f"--steps {self.steps}: --budget {self.budget} says how long too; leave out one")
        budget = self.budget or (None if self.steps else BUDGET)
        return Plan(self.texts(), budget, self.steps, 1 if self.seed is None else self.seed, self.all_settings())

    def all_settings(self) -> tuple[str, ...]:
        """With the threads of each of several rows at once: its share of the cores."""
        if self.at_once == 1 or any(setting.startswith(f"{THREADS}=") for setting in self.settings):
            return self.settings
        return (*self.settings, f"{THREADS}={max(1, cores() // self.at_once)}")

    def command(self, name: str) -> str:
        """What makes the same figures again, wherever it is kept."""
        plan, texts = self.plan(), self.texts()
        words = ["regard study", name, "--out DIR"]
        words += [] if texts == MULTI30K else [f"{option(each)} {getattr(texts, each)}" for each in FILES]
        words += [f"--budget {plan.budget}" if plan.budget else f"--steps {plan.steps}", f"--seed {plan.seed}"]
        words += [f"--set {setting}" for setting in plan.settings]
        words += [f"--at-once {self.at_once}"] if self.at_once > 1 else []
        return " ".join([*words, *(f"--rows {row}" for row in self.rows)])


def run_study(name: str, request: StudyRequest) -> None:
    """Train, score, compare, write; what came out goes to stdout, progress to stderr."""

    def tell(line: str) -> None:
        if not request.quiet:
            say(line)

    plan, command = request.plan(), request.command(name)
    asked = Asked(name, request.out, plan, request.rows, command, request.quiet, request.at_once, request.notes)
    report = conduct(asked, tell)
    if report is None:
        raise KeyboardInterrupt
    sys.stdout.write("".join(f"{line}\n" for line in report.contents.findings))
    sys.stdout.write(f"{request.out / f'study-{name}.html'}\n")
