"""Three tasks in one model, and one model for each of them in a third of the time."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.family.bench import RECIPES, Bench, Found, Model
from regard.data.accounts import resolve
from regard.data.labelled import read_labelled
from regard.data.options import CorpusOptions
from regard.files import write_atomically
from regard.recipe.recipe import parse, read_tree
from regard.training.options import seconds

RECIPE = RECIPES / "multi30k-trec-t5.yaml"
TEST = ("multi30k/test_2016_flickr.en.gz", "multi30k/test_2016_flickr.de.gz", "trec-qc/test.tsv.gz")
HELD_OUT = 300  # questions that the model of questions alone is validated with


def t5(bench: Bench) -> Found:
    tree = read_tree(RECIPE)
    corpora = parse(tree, RECIPE.name).data.corpora
    each = f"{round(seconds(bench.budget or tree['training']['budget']) / len(corpora))}s"
    together = bench.train("t5-mixture", [RECIPE])
    figures, minutes, shares = {}, together.minutes, []
    for place, corpus in enumerate(corpora):
        path = bench.work / "recipes" / f"t5-{place}.yaml"
        write_atomically(path, yaml.safe_dump(alone(tree, place, each), allow_unicode=True))
        single = Bench(bench.data, bench.work, None, None, bench.regard).train(f"t5-{place}", [path])
        ours, theirs = (score(bench, model, corpus) for model in (together, single))
        shares.append(ours / theirs)
        figures |= {f"mixture, {corpus.name}: together": ours, f"mixture, {corpus.name}: alone": theirs}
        figures |= {f"mixture, {corpus.name}: share": shares[-1]}
        minutes += single.minutes
    notes = (
        f"recipes/{RECIPE.name}, and the same recipe with one of its tasks, {each} each: the time that the mixture has "
        "for a task. BLEU of the captions of test_2016_flickr, per cent of the questions of test.tsv.gz with the right "
        "label written out."
    )
    return Found({"t5_worst_share_of_single": min(shares), **figures}, minutes, notes)


def alone(tree: Mapping[str, Any], place: int, budget: str) -> dict[str, Any]:
    """The recipe with one of its tasks, which is validated with its own pairs, or with some that are held out."""
    corpus = tree["data"]["corpora"][place]
    valid = [one for one in tree["data"]["valid"] if one["prefix"] == corpus["prefix"]]
    held = {"valid": valid} if valid else {"valid_size": HELD_OUT}
    data = {key: value for key, value in tree["data"].items() if key != "valid"} | {"corpora": [corpus]} | held
    return {**tree, "data": data, "training": {**tree["training"], "budget": budget}}


def score(bench: Bench, model: Model, corpus: CorpusOptions) -> float:
    """BLEU of captions, exact match of labels, on texts that no model has seen."""
    source, target = labelled_test(bench, corpus) if corpus.labelled else caption_test(bench, corpus)
    words = ["evaluate", model.folder, "--ask", corpus.prefix, "--source", source, "--target", target, "--json"]
    found = json.loads(bench.regard(*words))
    return float(found["exact_match"] if corpus.labelled else found["bleu"]["score"])


def caption_test(bench: Bench, corpus: CorpusOptions) -> tuple[Path, Path]:
    """The test files in the languages of the training files."""
    assert corpus.source is not None
    assert corpus.target is not None
    names = (path.name.replace("train", "test_2016_flickr") for path in (corpus.source, corpus.target))
    source, target = (bench.data / "multi30k" / name for name in names)
    return source, target


def labelled_test(bench: Bench, corpus: CorpusOptions) -> tuple[Path, Path]:
    """The questions and their labels as two files of lines."""
    assert corpus.labelled is not None
    assert corpus.labelled.file is not None
    test = corpus.labelled.model_copy(update={"file": resolve(corpus.labelled.file.with_name("test.tsv.gz"))})
    examples = list(read_labelled(test, "refuse", Counter()))
    source, target = (bench.work / "texts" / f"questions.{name}" for name in ("txt", "labels"))
    write_atomically(source, "".join(f"{example.text}\n" for example in examples))
    write_atomically(target, "".join(f"{example.label}\n" for example in examples))
    return source, target
