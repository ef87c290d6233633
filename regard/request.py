"""What a user asks of a training run: which data, what to change in the recipe, where the model goes."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from regard.errors import RecipeError
from regard.files import check_manifest
from regard.recipe.asked import Columns, labelled
from regard.recipe.folder import read_recipe
from regard.recipe.recipe import Tree, overlay, read_tree, with_settings
from regard.recipe.starting import begun


@dataclass(frozen=True)
class Request:
    """What a user asks of one run: a recipe or files, what to change in it, and where the model goes."""

    recipe: Path | None = None
    preset: str | None = None  # a name of the line-up, instead of a recipe
    source: Path | None = None
    target: Path | None = None
    tsv: Path | None = None
    jsonl: Path | None = None
    text: Sequence[Path] = ()  # for a language model
    valid_text: Sequence[Path] = ()
    images: Path | None = None  # for an image classifier
    image_labels: Path | None = None
    valid_images: Path | None = None
    valid_image_labels: Path | None = None
    trees: Sequence[Path] = ()  # for a parser
    valid_trees: Sequence[Path] = ()
    valid_source: Path | None = None
    valid_target: Path | None = None
    masked: bool = False  # of plain text, hidden tokens are learned instead of the next ones
    denoise: bool = False  # or stretches that were left out
    labelled: Path | None = None  # for a classifier
    valid_labelled: Path | None = None
    text_column: str | None = None  # of labelled files
    second_column: str | None = None
    label_column: str | None = None
    start: Path | None = None  # a model whose weights and vocabulary a run begins with
    vocabulary: Path | None = None  # a model whose tokenisers are used, instead of learning new ones
    out: Path | None = None
    budget: str | None = None
    steps: int | None = None
    epochs: float | None = None
    seed: int | None = None
    settings: Sequence[str] = ()
    resume: Path | None = None
    tensorboard: bool = False
    quiet: bool = False

    def tree(self) -> Tree:
        """The recipe file, the options over it, the settings over those."""
        tree = read_tree(self.recipe) if self.recipe else {}
        pair = {"source": self.source, "target": self.target}
        corpora = [each for each in map(given, (pair, {"tsv": self.tsv}, {"jsonl": self.jsonl})) if each]
        valid = {"source": self.valid_source, "target": self.valid_target}
        lengths = {"steps": self.steps, "epochs": self.epochs, "budget": self.budget}
        if corpora:
            tree = overlay(tree, {"data": {"corpora": corpora}})
        if self.vocabulary:
            tree = overlay(tree, {"text": text_of(self.vocabulary)})
        if given(valid):
            tree = overlay(tree, {"data": {"valid": given(valid)}})
        if self.text:
            files = {"files": [str(path) for path in self.text], "valid": [str(path) for path in self.valid_text]}
            kind = "masked" if self.masked else "denoise" if self.denoise else "language-model"
            unit = {} if kind == "language-model" else {"documents": "line"}  # as texts are read later: line by line
            tree = overlay(tree, {"task": {"kind": kind}, "data": {"texts": [files | unit]}})
        if self.labelled:
            columns = Columns(self.text_column, self.second_column, self.label_column)
            corpus_with_labels = labelled(self.labelled, self.valid_labelled, columns)
            tree = overlay(tree, {"task": {"kind": "classify"}, "data": {"labelled": [corpus_with_labels]}})
        if self.images:  # labels of a recipe's images are not those of others
            named = {
                "train": str(self.images),
                "train_labels": str(self.image_labels) if self.image_labels else None,
            }
            named |= given({"valid": self.valid_images, "valid_labels": self.valid_image_labels})
            tree = overlay(tree, {"task": {"kind": "classify-images"}, "data": {"images": named}})
        if self.trees:
            files = {"files": [str(path) for path in self.trees], "valid": [str(path) for path in self.valid_trees]}
            tree = overlay(tree, {"task": {"kind": "parse"}, "data": {"trees": files}})
        if given(lengths):  # the others become none: the recipe's own length must not contradict the option
            tree = overlay(tree, {"training": lengths})
        if self.seed is not None:
            tree = overlay(tree, {"training": {"seed": self.seed}})
        tree = with_settings(tree, self.settings)
        return begun(tree, self.start) if self.start else tree

    @property
    def lender(self) -> Path | None:
        """The model whose tokenisers are used."""
        return self.vocabulary or self.start

    def say(self, line: str) -> None:
        """What goes on while nothing else moves, on stderr."""
        if not self.quiet:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def refuse_contradictions(self) -> None:
        """Options that cannot be followed together, in the user's own words."""
        for one, other in (("source", "target"), ("valid_source", "valid_target")):
            for here, there in ((one, other), (other, one)):
                if getattr(self, here) is not None and getattr(self, there) is None:
                    raise RecipeError(f"{option(here)}: given without {option(there)}; parallel text needs both")
        if self.valid_text and not self.text:
            raise RecipeError("--valid-text: given without --text; what is learned from?")
        pairs = [name for name in ("source", "tsv", "jsonl", "preset") if getattr(self, name) is not None]
        if self.text and pairs:
            raise RecipeError(f"--text: plain text teaches a language model; leave out {option(pairs[0])}")
        self.refuse_images_with_text()
        self.refuse_contradictions_of_readers()
        if self.valid_trees and not self.trees:
            raise RecipeError("--valid-trees: given without --trees; what is learned from?")
        others = [name for name in ("source", "tsv", "jsonl", "text") if getattr(self, name)]
        if self.trees and others:
            raise RecipeError(f"--trees: a treebank teaches a parser; leave out {option(others[0])}")
        if self.preset and self.recipe:
            raise RecipeError(
                f"--preset {self.preset}: {self.recipe} says itself what learns; leave out one of the two, or change "
                "single values with --set"
            )
        if self.resume is None:
            return
        changed = [f.name for f in fields(self) if f.name not in WITH_RESUME and getattr(self, f.name) != f.default]
        if changed:
            raise RecipeError(
                f"--resume {self.resume}: a run goes on as it began; leave out {', '.join(map(option, changed))}"
            )

    def refuse_images_with_text(self) -> None:
        for name, needed in (
            ("image_labels", "images"),
            ("valid_images", "images"),
            ("valid_image_labels", "valid_images"),
        ):
            if getattr(self, name) is not None and getattr(self, needed) is None:
                raise RecipeError(f"{option(name)}: given without {option(needed)}; images and labels go together")
        texts = [
            name
            for name in ("source", "tsv", "jsonl", "text", "valid_source", "preset", "vocabulary")
            if getattr(self, name)
        ]
        if self.images and texts:
            raise RecipeError(f"{option('images')}: images teach an image classifier; leave out {option(texts[0])}")

    def refuse_contradictions_of_readers(self) -> None:
        """The same for what an encoder learns from, and begins with."""
        for name in ("masked", "denoise"):
            if getattr(self, name) and not self.text:
                raise RecipeError(f"--{name}: hides tokens of plain text; give some with --text, or leave it out")
        if self.masked and self.denoise:
            raise RecipeError("--denoise: the other way to hide tokens is --masked; leave one of them out")
        for name in ("valid_labelled", "text_column", "second_column", "label_column"):
            if getattr(self, name) is not None and self.labelled is None:
                raise RecipeError(f"{option(name)}: given without --labelled; what is learned from?")
        others = [name for name in ("text", "source", "tsv", "jsonl", "preset") if getattr(self, name)]
        if self.labelled and others:
            raise RecipeError(f"--labelled: texts with labels teach a classifier; leave out {option(others[0])}")
        for name in ("vocabulary", "preset"):
            if self.start and getattr(self, name):
                raise RecipeError(
                    f"--start {self.start}: brings its model and its vocabulary; leave out {option(name)}"
                )


WITH_RESUME = ("resume", "tensorboard", "quiet")


def option(name: str) -> str:
    """How a field of the request is written on the command line."""
    return {"recipe": "the recipe", "settings": "--set"}.get(name, f"--{name.replace('_', '-')}")


def given(options: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in options.items() if value is not None}


def text_of(model: Path) -> dict[str, Any]:
    """The part of a model's text section that its vocabulary decides."""
    check_manifest(model)
    return read_recipe(model).text.model_dump(exclude={"dropout"})
