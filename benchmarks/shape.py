"""What is measured: the shape of a model, and synthetic text with the lengths of image captions."""

from dataclasses import dataclass

import numpy as np

from regard.data.batches import Share
from regard.data.examples import Example
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.models.interface import SequenceToSequence
from regard.recipe.build import build
from regard.recipe.models import TransformerOptions
from regard.tasks.options import LossOptions
from regard.tasks.translate import TrainingSet, Translation, Validation, Vocabularies
from regard.text.characters import Characters
from regard.text.special import NAMES

SMOOTHING = 0.1


@dataclass(frozen=True)
class Shape:
    """Sizes of the model and of the run; every timing is the median of `repeats` after `warmup` that do not count."""

    model: TransformerOptions
    vocabulary: int
    batch_tokens: int
    steps: int  # of training in one turn
    singles: int  # sentences that are translated one by one
    repeats: int
    warmup: int
    real: bool  # text: Multi30k or made up


FULL = Shape(
    TransformerOptions(), vocabulary=8000, batch_tokens=4096, steps=3, singles=100, repeats=7, warmup=2, real=True
)
QUICK = Shape(
    TransformerOptions(width=32, feedforward=64, encoder_layers=1, decoder_layers=1),
    vocabulary=100,
    batch_tokens=256,
    steps=2,
    singles=3,
    repeats=5,
    warmup=1,
    real=False,
)


def model(shape: Shape) -> SequenceToSequence:
    return build(shape.model, shape.vocabulary, shape.vocabulary, shared=True, seed=1)


def examples(count: int, vocabulary: int, seed: int) -> list[Example]:
    """Random ids. Source lengths as in Multi30k (median 14 tokens, 90 % below 22); targets within a few tokens."""
    rng = np.random.default_rng(seed)
    sources = np.clip(np.rint(rng.lognormal(np.log(14), 0.33, count)), 4, 50).astype(int)
    targets = np.clip(np.rint(sources + rng.normal(0.5, 2.5, count)), 3, 50).astype(int)

    def ids(length: int) -> np.ndarray:
        return rng.integers(len(NAMES), vocabulary, length, dtype=np.int32)

    return [Example(ids(s), ids(t)) for s, t in zip(sources, targets, strict=True)]


def task(shape: Shape) -> Translation:
    """Translation of random ids, with batches enough that no repeat meets a batch again."""
    count = 2 * (shape.warmup + shape.repeats) * shape.batch_tokens // 15
    found = examples(count, shape.vocabulary, seed=1)
    data = TrainingSet(found, [Pair("", "")] * count, [Share(count)], shape.batch_tokens, dropout=0.0, seed=1)
    unread = Characters("")  # ids come ready-made: nobody asks the vocabulary
    return Translation(
        data, Validation([], SearchOptions(), 0), Vocabularies(unread, unread), LossOptions(smoothing=SMOOTHING)
    )
