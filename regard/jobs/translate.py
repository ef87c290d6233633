"""Sequence to sequence as a job: pairs of texts, two vocabularies, BLEU."""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.accounts import Report
from regard.data.alignment import piece_links
from regard.data.batches import Share
from regard.data.corpus import Corpus, Loaded, load_corpora
from regard.data.examples import encode
from regard.data.pairs import Pair
from regard.decoding.shortlist import coverage, learn_shortlist
from regard.engine import TorchEngine
from regard.errors import DataError
from regard.evaluation.scores import Scores, evaluate
from regard.explaining.alignment import cross_attentions
from regard.explaining.film import Scene, scenes
from regard.jobs.interface import Prepared, Verdict
from regard.models.interface import SequenceToSequence
from regard.recipe.folder import ModelFolder, fresh_model, read_vocabularies, refuse_impossible, write_shortlist
from regard.recipe.presets import choose
from regard.recipe.recipe import Recipe, Tree
from regard.tasks.guiding import refuse_unteachable
from regard.tasks.translate import TrainingSet, Translation, Validation, Vocabularies
from regard.text.learn import TRANSLATED, learn
from regard.training.events import Finished

BLEU_SENTENCES = 200  # of the validation set, translated greedily at each validation


class TranslateJob:
    """See jobs/interface.py for what each method promises."""

    def refuse_impossible(self, recipe: Recipe) -> None:
        refuse_impossible(recipe)

    def load(self, recipe: Recipe) -> Loaded:
        return load_corpora(recipe.data, recipe.training.seed)

    def choose(self, loaded: Loaded, name: str, asked: Recipe) -> Tree:
        return choose([pair for corpus in loaded.corpora for pair in corpus.pairs], name, asked)

    def learn(self, recipe: Recipe, loaded: Loaded) -> Vocabularies:
        return learn_vocabularies(recipe, loaded.corpora)

    def read(self, folder: Path, recipe: Recipe) -> Vocabularies:
        return read_vocabularies(folder, recipe)

    def prepare(self, recipe: Recipe, loaded: Loaded, lexicon: Vocabularies) -> Prepared:
        task, report = translation(recipe, loaded, lexicon)
        text = fingerprint([*task.data.pairs, *loaded.validation])
        model = fresh_model(recipe, lexicon)
        if recipe.loss.guided:
            refuse_unteachable(model, recipe.loss)
        return Prepared(recipe, report, text, lexicon, task, model, filmed(model, loaded.validation, lexicon))

    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:  # noqa: ARG002
        """Translates the validation pairs with the recipe's own search; writes a shortlist where one pays."""
        task, recipe = prepared.task, prepared.recipe
        assert isinstance(task, Translation)
        assert isinstance(prepared.model, SequenceToSequence)
        engine = TorchEngine(ModelFolder(folder, recipe, task.vocabularies, prepared.model))
        valid = task.validation
        outputs = [translation.text for translation in engine.translate([pair.source for pair in valid.pairs])]
        scores = evaluate(outputs, [pair.target for pair in valid.pairs])
        parts = scores_of_parts(valid, outputs)
        named = {"parts": {name: part.to_json() for name, part in parts}} if parts else {}
        return Verdict(
            summary=summed_up(scores, parts),
            usage=usage(recipe, folder.name),
            scores=[*described(scores, prepared.report, recipe), *described_parts(parts)],
            text=[described_words(recipe, task.vocabularies)],
            facts={"validation": scores.to_json(), **named, **add_shortlist(task, recipe, folder)},
        )


def filmed(model: SequenceToSequence, pairs: Sequence[Pair], words: Vocabularies) -> tuple[Scene, ...]:
    """The validation sentences to be watched, if the model looks at its source at all."""
    return scenes(pairs, words.source, words.target) if cross_attentions(model) else ()


Parts = Sequence[tuple[str, Scores]]


def scores_of_parts(valid: Validation, outputs: Sequence[str]) -> Parts:
    """The scores of each task by itself, if there are several."""
    found, rest = [], iter(outputs)
    for name, pairs in valid.of_each():
        found.append((name, evaluate([next(rest) for _ in pairs], [pair.target for pair in pairs])))
    return found


def summed_up(scores: Scores, parts: Parts) -> str:
    def line(one: Scores) -> str:
        return f"BLEU {one.bleu.score:.2f}, chrF {one.chrf.score:.2f}"

    if not parts:
        return line(scores)
    return "; ".join(f"{name}: {line(one)}, {one.exact_match:.1f} % exact" for name, one in parts)


def usage(recipe: Recipe, name: str) -> list[str]:
    """How the model is asked, once for each task that it knows."""
    prefixes = dict.fromkeys(corpus.prefix for corpus in recipe.data.corpora)
    options = [f"--ask {shlex.quote(prefix)} " if prefix else "" for prefix in prefixes]
    return [f"regard translate {name} {option}< in.txt > out.txt" for option in options]


def described_parts(parts: Parts) -> list[str]:
    """The same for every task by itself."""
    lines = [
        f"- {name}: BLEU {one.bleu.score:.2f}, chrF {one.chrf.score:.2f}, exact match {one.exact_match:.2f} % "
        f"of {one.sentences:,}"
        for name, one in parts
    ]
    return ["", "By task:", "", *lines] if lines else []


def learn_vocabularies(recipe: Recipe, corpora: Sequence[Corpus]) -> Vocabularies:
    seed = recipe.training.seed
    sources = [pair.source for corpus in corpora for pair in corpus.pairs]
    targets = [pair.target for corpus in corpora for pair in corpus.pairs]
    if recipe.text.shared:
        both = learn(sources + targets, recipe.text, seed, TRANSLATED)
        return Vocabularies(both, both)
    return Vocabularies(*(learn(side, recipe.text, seed, TRANSLATED) for side in (sources, targets)))


def translation(recipe: Recipe, loaded: Loaded, vocabularies: Vocabularies) -> tuple[Translation, Report]:
    """Text into examples, examples into a task, and the account of what was read, less what is too long."""
    data = recipe.data
    examples, pairs, shares, accounts = [], [], [], []
    for corpus, account in zip(loaded.corpora, loaded.report.corpora, strict=True):
        found, kept = encode(corpus.pairs, vocabularies.source, vocabularies.target, data.max_tokens)
        examples += found
        pairs += kept
        shares.append(Share(len(found), corpus.weight))
        accounts.append(account.without("too many tokens", len(corpus.pairs) - len(found)))
    if not examples:
        raise DataError(f"data.max_tokens: no pair has at most {data.max_tokens} tokens a side; raise it")
    dropout, seed = recipe.text.dropout, recipe.training.seed
    guides = pairs if recipe.loss.guided else []
    links = [piece_links(pair, vocabularies.source, vocabularies.target) for pair in guides]
    text = TrainingSet(examples, pairs, shares, data.batch_tokens, dropout, seed, links)
    greedy = recipe.decoding.model_copy(update={"beam": 1, "n_best": 1})
    validation = Validation(loaded.validation, greedy, BLEU_SENTENCES, loaded.parts)
    task = Translation(text, validation, vocabularies, recipe.loss)
    return task, replace(loaded.report, corpora=tuple(accounts))


def fingerprint(pairs: Sequence[Pair]) -> str:
    """sha256 of the text in its order, and of its alignments where it has any."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(f"{pair.source}\n{pair.target}\n".encode())
        if pair.alignment is not None:
            digest.update(f"{pair.alignment}\n".encode())
    return digest.hexdigest()


def add_shortlist(task: Translation, recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Learn and write the shortlist, if there is to be one; how much of the validation text it covers."""
    source, target = task.vocabularies.source, task.vocabularies.target
    shortlist = learn_shortlist(task.data.examples, source, target, recipe.training.seed)
    if shortlist is None:
        return {}
    write_shortlist(folder, shortlist)
    valid, _ = encode(task.validation.pairs, source, target, recipe.data.max_tokens)
    return {"shortlist": {"covers": round(coverage(shortlist, valid), 4)}}


def described(scores: Scores, report: Report, recipe: Recipe) -> list[str]:
    """The card's part on quality."""
    return [
        f"## Quality on {scores.sentences:,} validation pairs ({report.origin})",
        "",
        # A list, because the bars of a signature would end the cells of a table.
        *(f"- {score} {found.score:.2f} (`{found.signature}`)" for score, found in scores.named()),
        f"- exact match {scores.exact_match:.2f} %",
        "",
        f"Beam {recipe.decoding.beam}, length penalty {recipe.decoding.length_penalty:g}. Choices made by looking at "
        "validation pairs, of a checkpoint or of a setting, favour them: expect a little less on a test set.",
    ]


def described_words(recipe: Recipe, vocabularies: Vocabularies) -> str:
    sizes = f"{len(vocabularies.source):,}" + ("" if vocabularies.shared else f" and {len(vocabularies.target):,}")
    both = ", shared by both sides" if vocabularies.shared else ""
    return f"{recipe.text.kind} vocabulary of {sizes} entries{both}"
