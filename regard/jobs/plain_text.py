"""What the jobs on plain text share: one vocabulary, a stream to learn from and one held out, and their fingerprint."""

import hashlib
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from regard.data.packing import join
from regard.data.plain import LoadedTexts, load_texts
from regard.errors import RecipeError
from regard.jobs.refusals import refuse_unused
from regard.recipe.folder import read_vocabularies
from regard.recipe.recipe import Recipe
from regard.tasks.translate import Vocabularies
from regard.text.learn import learn
from regard.text.tokeniser import Tokeniser


def refuse_two_vocabularies(recipe: Recipe) -> None:
    if not recipe.text.shared:
        raise RecipeError(f"text.shared: false, but task {recipe.task.kind} has one vocabulary; leave it true")


def refuse_noise(recipe: Recipe, task: str) -> None:
    """What makes texts or passes differ, for a task that hides tokens as it is."""
    loss = recipe.loss
    unused = {"text.dropout": recipe.text.dropout, "loss.rdrop": loss.rdrop}
    unused |= {"loss.source_word_dropout": loss.source_word_dropout}
    unused |= {"loss.target_word_dropout": loss.target_word_dropout}
    refuse_unused(unused, task)


class PlainTextJob:
    """The part of a job on plain text that is the same for all; see jobs/interface.py."""

    def load(self, recipe: Recipe) -> LoadedTexts:
        data = recipe.data
        return load_texts(data.texts, data.valid_size, data.bad_lines, recipe.training.seed)

    def learn(self, recipe: Recipe, loaded: LoadedTexts) -> Vocabularies:
        """One vocabulary for both sides, of whole documents: line ends are text here."""
        both = learn(loaded.training, recipe.text, recipe.training.seed)
        return Vocabularies(both, both)

    def read(self, folder: Path, recipe: Recipe) -> Vocabularies:
        return read_vocabularies(folder, recipe)


def streams(
    loaded: LoadedTexts, tokeniser: Tokeniser
) -> tuple[Int32[np.ndarray, " tokens"], Int32[np.ndarray, " others"]]:
    """What is learned from, and what is held out."""
    training, held_out = (
        join(tokeniser.encode(text) for text in texts) for texts in (loaded.training, loaded.validation)
    )
    return training, held_out


def fingerprint(loaded: LoadedTexts) -> str:
    """sha256 of the documents in their order."""
    digest = hashlib.sha256()
    for text in (*loaded.training, *loaded.validation):
        digest.update(f"{len(text)}\n{text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
