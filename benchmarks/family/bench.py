"""What every part is measured with: commands that are shown before they run, and models that are trained once."""

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import quality
from benchmarks.results import ROOT
from benchmarks.stage import say
from regard.files import MANIFEST
from regard.recipe.recipe import Recipe, parse, read_tree

RECIPES = ROOT / "recipes"
Word = str | Path


def regard(*words: Word) -> str:
    """One command, as typed; it is shown first, its progress goes to the terminal, its answer comes back."""
    say("$ " + shlex.join(str(word).removeprefix(f"{ROOT}/") for word in ("regard", *words)))
    return quality.regard(*words)


@dataclass(frozen=True)
class Found:
    """What a part found: its figures, minutes of training (or of turns), and how the figures were made."""

    figures: Mapping[str, float]
    minutes: float
    notes: str


@dataclass(frozen=True)
class Model:
    """A finished model directory and what its manifest says."""

    folder: Path
    facts: Mapping[str, Any]

    @property
    def minutes(self) -> float:
        return float(self.facts["seconds"]) / 60


@dataclass(frozen=True)
class Bench:
    """One part's bench: where data and work lie; `budget` is for every training of the part, none: as recipes say."""

    data: Path
    work: Path
    budget: str | None = None
    evalb: Path | None = None  # the program
    regard: Callable[..., str] = regard

    def train(self, name: str, words: Sequence[Word], budget: str | None = None) -> Model:
        """The model of `regard train WORDS`; whatever was interrupted goes on, whatever is finished is only read.

        `budget` is for words that do not say how long. A model that is asked for otherwise is another one.
        """
        length = self.budget or budget
        asked = [*words, *(["--budget", length] if length else [])]
        folder = self.work / "models" / f"{name}-{fingerprint(asked)}"
        if not (folder / MANIFEST).exists():
            self.regard("train", *(["--resume", folder] if folder.exists() else [*asked, "--out", folder]))
        return Model(folder, json.loads((folder / MANIFEST).read_bytes()))


def fingerprint(words: Sequence[Word]) -> str:
    """Eight hex digits of what is asked: a recipe by its settings, another file by its bytes, a folder by its name."""
    return hashlib.sha256(json.dumps([content(word) for word in words]).encode()).hexdigest()[:8]


def content(word: Word) -> str:
    if isinstance(word, str):
        return word
    if word.suffix == ".yaml":
        return json.dumps(read_tree(word), sort_keys=True)  # without its comments
    return checksum(word) if word.is_file() else word.name


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def recipe_of(path: Path) -> Recipe:
    return parse(read_tree(path), path.name)
