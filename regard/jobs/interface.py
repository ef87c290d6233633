"""What one kind of task adds to a run: its data, its words, its model, its scores. The run is the same for all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import nn

from regard.data.accounts import Report
from regard.explaining.film import Scene
from regard.recipe.folder import Lexicon
from regard.recipe.recipe import Recipe, Tree
from regard.tasks.interface import Task
from regard.training.events import Finished

L = TypeVar("L", bound=Lexicon)
D = TypeVar("D")  # what a job reads from disk


@dataclass(frozen=True)
class Prepared:
    """Everything a run needs before its first step.

    `text` is the fingerprint of its data. `film` are sentences whose cross-attention is watched; none: there is none.
    """

    recipe: Recipe
    report: Report
    text: str
    lexicon: Lexicon
    task: Task[Any, Any]
    model: nn.Module
    film: Sequence[Scene] = ()


@dataclass(frozen=True)
class Verdict:
    """How good a finished model is: for the person who waits, for the card, for programs."""

    summary: str  # one line
    usage: Sequence[str]  # commands that use the model, for its card
    scores: Sequence[str]  # Markdown lines, the first a heading
    text: Sequence[str]  # what the card says of its words, beside what was read
    facts: Mapping[str, Any]  # into manifest.json; "validation" holds the scores


@runtime_checkable
class Job(Protocol[D, L]):
    """The parts of a run in their order. Whatever is wrong with recipe or data is refused before `prepare` ends."""

    def refuse_impossible(self, recipe: Recipe) -> None:
        """Sizes and choices that do not go together, before any text is read."""
        ...

    def load(self, recipe: Recipe) -> D:
        """What is learned from, and what is validated with."""
        ...

    def choose(self, loaded: D, name: str, asked: Recipe) -> Tree:
        """A recipe tree that fits this much data, for someone who gave none.

        `name` is a preset or a kind of model; `asked` is what was asked for besides, such as the length of the run.
        """
        ...

    def learn(self, recipe: Recipe, loaded: D) -> L: ...
    def read(self, folder: Path, recipe: Recipe) -> L:
        """What `Lexicon.save` wrote."""
        ...

    def prepare(self, recipe: Recipe, loaded: D, lexicon: L) -> Prepared: ...
    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:
        """Score the final weights as a user would use them; may write further files into the folder."""
        ...
