"""What the jobs on plain text share: one vocabulary, a stream to learn from and one held out, and their fingerprint."""

import hashlib

import numpy as np
from jaxtyping import Int32

from regard.data.packing import join
from regard.data.plain import LoadedTexts, load_texts
from regard.errors import RecipeError
from regard.recipe.recipe import Recipe
from regard.tasks.translate import Vocabularies
from regard.text.learn import learn
from regard.text.tokeniser import Tokeniser


def refuse_two_vocabularies(recipe: Recipe) -> None:
    if not recipe.text.shared:
        raise RecipeError(f"text.shared: false, but task {recipe.task.kind} has one vocabulary; leave it true")


def load_plain(recipe: Recipe) -> LoadedTexts:
    data = recipe.data
    return load_texts(data.texts, data.valid_size, data.bad_lines, recipe.training.seed)


def learn_one(recipe: Recipe, loaded: LoadedTexts) -> Vocabularies:
    """One vocabulary for both sides, of whole documents: line ends are text here."""
    both = learn(loaded.training, recipe.text, recipe.training.seed)
    return Vocabularies(both, both)


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
