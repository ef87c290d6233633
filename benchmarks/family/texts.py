"""Sorting texts: from scratch, and from a masked language model of the same training texts."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.family.bench import RECIPES, Bench, Found, Model, Word, recipe_of
from regard.data.accounts import resolve
from regard.data.labelled import read_labelled
from regard.data.options import LabelledOptions
from regard.files import write_atomically
from regard.recipe.recipe import Recipe

PRETRAINING = "5m"  # of the masked language model
SIZES = ("width", "heads", "feedforward", "layers", "positions")  # in which the two must agree
PATIENCE = 10  # as many as there are validations: the run ends as planned, with the weights that validated best
TEST = "test.tsv.gz"  # beside the training file


def polarity(bench: Bench) -> Found:
    return both_ways(bench, "polarity", RECIPES / "sentence-polarity.yaml")


def trec(bench: Bench) -> Found:
    return both_ways(bench, "trec", RECIPES / "trec-qc.yaml")


def both_ways(bench: Bench, name: str, path: Path) -> Found:
    """The recipe as it is, and the same recipe with an encoder that has learned to fill holes in its texts."""
    recipe = recipe_of(path)
    options = recipe.data.labelled[0]
    assert options.file is not None
    test = options.file.with_name(TEST)
    scratch = bench.train(name, [path])
    masked = bench.train(f"{name}-masked", masked_words(bench, name, recipe), PRETRAINING)
    begun = bench.train(f"{name}-pretrained", [path, "--start", masked.folder])
    figures = {
        f"{name}_accuracy": accuracy(bench, scratch, test),
        f"{name}_accuracy_pretrained": accuracy(bench, begun, test),
        f"{name}_minutes": scratch.minutes,
        f"{name}_minutes_pretrained": masked.minutes + begun.minutes,
    }
    seen, asked = read_texts(options, options.file), read_texts(options, test)
    twice = len(set(seen) & set(asked))
    notes = (
        f"recipes/{path.name}; per cent of the {len(asked):,} texts of {test.name}. Pretrained: the encoder begins as "
        f"that of a masked language model of the same sizes, trained for {bench.budget or PRETRAINING} on the texts of "
        f"the training file alone. {twice or 'None'} of the test texts {'stands' if twice == 1 else 'stand'} in the "
        "training file as well."
    )
    return Found(figures, sum(model.minutes for model in (scratch, masked, begun)), notes)


def masked_words(bench: Bench, name: str, recipe: Recipe) -> list[Word]:
    """What `regard train` is asked for the masked language model: the training texts, one a line."""
    options = recipe.data.labelled[0]
    assert options.file is not None
    words: list[Word] = ["--text", write_texts(bench, f"{name}.train.txt", read_texts(options, options.file))]
    if options.valid is not None:
        words += ["--valid-text", write_texts(bench, f"{name}.valid.txt", read_texts(options, options.valid))]
    settings = [f"model.{size}={getattr(recipe.model, size)}" for size in SIZES]
    settings += [f"training.validations={PATIENCE}", f"training.patience={PATIENCE}"]
    return [*words, "--masked", *(word for setting in settings for word in ("--set", setting))]


def read_texts(options: LabelledOptions, file: Path) -> list[str]:
    """The texts of a file of the same form, in order; blank ones are none."""
    examples = read_labelled(options.model_copy(update={"file": resolve(file)}), "refuse", Counter())
    return [example.text for example in examples if example.text.strip()]


def write_texts(bench: Bench, name: str, texts: Sequence[str]) -> Path:
    path = bench.work / "texts" / name
    write_atomically(path, "".join(f"{text}\n" for text in texts))
    return path


def accuracy(bench: Bench, model: Model, test: Path) -> float:
    found = json.loads(bench.regard("classify", model.folder, "--labelled", test, "--json"))
    return float(found["accuracy"])
