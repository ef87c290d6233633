"""Sorting texts as a job: texts with labels, one vocabulary, accuracy and macro F1."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from regard.data.batches import Share
from regard.data.labelled import LabelledText, LoadedLabelled, load_labelled
from regard.errors import RecipeError
from regard.jobs.interface import Prepared, Verdict
from regard.jobs.plain_text import refuse_two_vocabularies
from regard.jobs.refusals import refuse_unused
from regard.recipe.build_bert import build_classifier
from regard.recipe.folder import read_vocabularies, weights_refused
from regard.recipe.reading import bert, fresh_classifier
from regard.recipe.reading_presets import choose_classifier
from regard.recipe.recipe import Recipe, Tree
from regard.tasks.classify import Classes, Classification, Reading, Texts
from regard.tasks.translate import Vocabularies
from regard.text.learn import learn
from regard.training.events import Finished

FEWEST = {False: 3, True: 5}  # tokens of a frame with one token of each text


class ClassifyJob:
    """See jobs/interface.py for what each method promises.

    The names of the classes come with the examples: what is learned and read beside them is the vocabulary.
    """

    def refuse_impossible(self, recipe: Recipe) -> None:
        refuse_two_vocabularies(recipe)
        refuse_unused({"loss.target_word_dropout": recipe.loss.target_word_dropout}, "classify")
        pairs = any(corpus.second is not None for corpus in recipe.data.labelled)
        if recipe.data.max_tokens < FEWEST[pairs]:
            raise RecipeError(
                f"data.max_tokens: {recipe.data.max_tokens} leaves no room between start and end; "
                f"use at least {FEWEST[pairs]}"
            )
        if pairs and bert(recipe).segments < 2:
            raise RecipeError("model.segments: 1, but data.labelled has pairs of texts to tell apart; use 2")
        with weights_refused(), torch.device("meta"):
            build_classifier(bert(recipe), 5, classes=2, seed=0)

    def load(self, recipe: Recipe) -> LoadedLabelled:
        data = recipe.data
        return load_labelled(data.labelled, data.valid_size, data.bad_lines, recipe.training.seed)

    def choose(self, loaded: LoadedLabelled, name: str, asked: Recipe) -> Tree:  # noqa: ARG002
        return choose_classifier(sum(len(corpus.examples) for corpus in loaded.corpora))

    def learn(self, recipe: Recipe, loaded: LoadedLabelled) -> Vocabularies:
        examples = [example for corpus in loaded.corpora for example in corpus.examples]
        texts = [example.text for example in examples]
        texts += [example.second for example in examples if example.second is not None]
        both = learn(texts, recipe.text, recipe.training.seed)
        return Vocabularies(both, both)

    def read(self, folder: Path, recipe: Recipe) -> Vocabularies:
        return read_vocabularies(folder, recipe)

    def prepare(self, recipe: Recipe, loaded: LoadedLabelled, lexicon: Vocabularies) -> Prepared:
        data, labels, tokeniser = recipe.data, loaded.labels, lexicon.target
        examples = [example for corpus in loaded.corpora for example in corpus.examples]
        training, validation = (
            Texts(part, labels.ids([example.label for example in part], "data.labelled"))
            for part in (examples, loaded.validation)
        )
        shares = [Share(len(corpus.examples), corpus.weight) for corpus in loaded.corpora]
        reading = Reading(tokeniser, data.max_tokens, data.batch_tokens, recipe.text.dropout, recipe.training.seed)
        task = Classification(training, shares, validation, reading, recipe.loss)
        classes = Classes(tokeniser, labels, examples[0].second is not None)
        report = replace(loaded.report, notes=notes(task.shortened(), data.max_tokens))
        text = fingerprint([*examples, *loaded.validation])
        return Prepared(recipe, report, text, classes, task, fresh_classifier(recipe, classes))

    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:
        """The scores of the last validation: they are of all the validation texts already."""
        task, classes, recipe = prepared.task, prepared.lexicon, prepared.recipe
        assert isinstance(task, Classification)
        assert isinstance(classes, Classes)
        with torch.no_grad():
            scores = finished.scores or task.evaluate(prepared.model)
        names = ", ".join(classes.labels.names)
        return Verdict(
            summary=f"accuracy {scores['accuracy']:.2f} %, macro F1 {scores['macro_f1']:.2f}",
            usage=[
                f"regard classify {folder.name} < lines.txt > labels.txt",
                f"regard classify {folder.name} --labelled test.tsv",
            ],
            scores=[
                f"## Quality on {len(task.validation.labels):,} validation texts ({prepared.report.origin})",
                "",
                f"- accuracy {scores['accuracy']:.2f} %",
                f"- macro F1 {scores['macro_f1']:.2f}",
                f"- loss {scores['loss']:.4f} nats a text",
                "",
                f"{len(classes.labels):,} classes: {names}. Choices made by looking at validation texts, of a "
                "checkpoint or of a setting, favour them: expect a little less on a test set.",
            ],
            text=[f"{recipe.text.kind} vocabulary of {len(classes.tokeniser):,} entries"],
            facts={"validation": scores},
        )


def notes(shortened: tuple[int, int], most: int) -> tuple[str, ...]:
    """What the report says of texts that are read in part."""
    if not any(shortened):
        return ()
    return (f"cut after {most} tokens: {shortened[0]:,} texts, and {shortened[1]:,} of the validation",)


def fingerprint(examples: Sequence[LabelledText]) -> str:
    """sha256 of the examples in their order."""
    digest = hashlib.sha256()
    for example in examples:
        parts = (example.text, example.second, example.label)
        digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
