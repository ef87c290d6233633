"""The recipe for someone who gave none: a model of the line-up, sized for the corpus, so that two files are enough."""

import difflib
from collections.abc import Sequence

from regard.data.options import DataOptions
from regard.data.pairs import Pair
from regard.errors import RecipeError
from regard.recipe.affordable import affordable
from regard.recipe.lineup import LINEUP, OF_A_KIND, Preset, Size, Tree
from regard.recipe.recipe import Recipe, overlay

SIZES = {  # by the number of pairs that stays below
    5_000: Size(
        width=128,
        heads=4,
        feedforward=512,
        layers=2,
        dropout=0.2,
        batch_tokens=1000,
        learning_rate=0.003,
        epochs=60.0,
        weight_decay=0.3,
    ),
    100_000: Size(
        width=192,
        heads=4,
        feedforward=768,
        layers=3,
        dropout=0.2,
        batch_tokens=2000,
        learning_rate=0.003,
        weight_decay=0.3,
    ),
    300_000: Size(
        width=256, heads=4, feedforward=1024, layers=4, dropout=0.1, batch_tokens=3000, learning_rate=0.002, epochs=20.0
    ),
    1_000_000: Size(
        width=320, heads=5, feedforward=1280, layers=4, dropout=0.1, batch_tokens=3000, learning_rate=0.002, epochs=12.0
    ),
}
LARGE = Size(
    width=512, heads=8, feedforward=2048, layers=6, dropout=0.1, batch_tokens=4096, learning_rate=0.001, epochs=8.0
)


def choose(pairs: Sequence[Pair], name: str, asked: Recipe | None = None) -> Tree:
    """A recipe tree (without its data files) that fits this much text, on a CPU; `name` is a preset or a kind of model.

    `asked` says how long the run is to be and how text is cut; a short run gets a smaller model with less dropout.

    Small corpora want small models and many updates. On Multi30k (29,000 pairs) rotary positions and Muon each lowered
    the validation loss for the same minutes; the moving average of weights stands in for choosing a checkpoint. There
    the dev loss was lowest after some twenty epochs; how many other sizes are given without a budget is a guess. That
    tables of words gain from a higher rate than matrices, in the first epochs, was measured for translation alone:
    parsers keep one. Weights that fade faster were measured there alone, too: 41.97 instead of 40.58 BLEU after nine
    times through the text, 37.05 instead of 36.88 after three (results/study-levers-decay*.md).
    """
    up_to = [size for limit, size in SIZES.items() if limit <= len(pairs)] + [size_for(len(pairs))]
    sizes = up_to[1:] or up_to  # the smallest of all is for the smallest texts alone
    size = affordable(sizes, pairs, asked or Recipe(data=DataOptions()))
    preset = named(name)
    training = {"rest_rate": preset.rest}
    chosen = asked.training.optimiser if asked and "optimiser" in asked.training.model_fields_set else preset.optimiser
    if chosen == "muon" and size.weight_decay is not None:
        training["weight_decay"] = size.weight_decay
    return overlay(of_the_lineup(name, size), {"training": training})


def size_for(pairs: int) -> Size:
    """The size that so many pairs can feed."""
    return next((size for limit, size in SIZES.items() if pairs < limit), LARGE)


def named(name: str) -> Preset:
    """The preset of this name, or of this kind of model."""
    preset = LINEUP.get(OF_A_KIND.get(name, name))
    if preset is None:
        near = difflib.get_close_matches(name, LINEUP, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known presets: {', '.join(LINEUP)}"
        raise RecipeError(f"--preset {name}: not known; {hint}")
    return preset


def of_the_lineup(name: str, size: Size) -> Tree:
    """This preset at this size."""
    preset = named(name)
    training = {
        "epochs": size.epochs,
        "learning_rate": preset.learning_rate(size),
        "schedule": "linear",
        "ema": 0.995,
        "optimiser": preset.optimiser,
    }
    return {"data": {"batch_tokens": size.batch_tokens}, "model": preset.model(size), "training": training}


PARSER_SIZES = {  # by the number of trees that stays below; a tree has two to three times the symbols of a sentence
    10_000: Size(width=192, heads=4, feedforward=768, layers=3, dropout=0.3, batch_tokens=2000, learning_rate=0.003),
    100_000: Size(width=320, heads=5, feedforward=1280, layers=4, dropout=0.2, batch_tokens=3000, learning_rate=0.002),
}


def choose_parser(trees: int, name: str) -> Tree:
    """A recipe tree (without its files) for a parser that learns from so many trees; `name` as for `choose`.

    Treebanks are small and are read many times over: more dropout than for translation. The penalty on length is that
    of Vaswani et al. 2017, §6.3: 1, the mean over all symbols, would favour trees of many brackets. Words are numbered,
    and one head is taught to look at the next: of 250 trees held out of the Penn Treebank's sample a Transformer had F1
    45.6 after six minutes on one core with both, 29.7 after eight with the head alone, 14.3 with numbers alone.
    """
    size = next((size for limit, size in PARSER_SIZES.items() if trees < limit), LARGE)
    tree = of_the_lineup(name, size) | {"task": {"numbers": 50}, "decoding": {"length_penalty": 0.3}}
    guided = {"loss": {"guided": 1.0, "guided_step": "writing"}}
    return tree | guided if named(name).attends else tree


def choose_denoiser(characters: int, name: str) -> Tree:
    """A recipe tree (without its files) for a model that learns to write what was left out of this much text.

    Its size is that of a translator of a corpus that is as long: some 100 characters are a pair. A hundred sentinels
    are T5's.
    """
    return of_the_lineup(name, size_for(characters // 100)) | {"text": {"sentinels": 100}, "loss": {"smoothing": 0.0}}


LANGUAGE_SIZES = {  # by the number of characters that stays below
    3_000_000: Size(width=192, heads=6, feedforward=768, layers=6, dropout=0.2, batch_tokens=4096, learning_rate=0.003),
    100_000_000: Size(
        width=384, heads=6, feedforward=1536, layers=6, dropout=0.1, batch_tokens=8192, learning_rate=0.002
    ),
}


def choose_language_model(characters: int) -> Tree:
    """A recipe tree (without its files) for a language model of this much text, on a CPU."""
    size = next((size for limit, size in LANGUAGE_SIZES.items() if characters < limit), LARGE)
    model = {
        "kind": "gpt",
        "width": size.width,
        "heads": size.heads,
        "feedforward": size.feedforward,
        "layers": size.layers,
        "dropout": size.dropout,
        "positions": "rotary",
    }
    training = {"learning_rate": size.learning_rate, "schedule": "linear", "ema": 0.995, "optimiser": "muon"}
    return {
        "data": {"batch_tokens": size.batch_tokens},
        "model": model,
        "loss": {"smoothing": 0.0},
        "training": training,
    }
