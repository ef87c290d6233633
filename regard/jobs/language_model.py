"""Predicting the next token as a job: plain text, one vocabulary, perplexity."""

from pathlib import Path

import torch

from regard.data.packing import cropped_epoch, packed_epoch
from regard.data.plain import LoadedTexts
from regard.jobs.interface import Prepared, Verdict
from regard.jobs.plain_text import PlainTextJob, fingerprint, refuse_two_vocabularies, streams
from regard.recipe.folder import fresh_model, refuse_impossible
from regard.recipe.presets import choose_language_model
from regard.recipe.recipe import Recipe, Tree
from regard.tasks.language_model import HeldOut, LanguageModelling, Rows
from regard.tasks.options import LanguageModelOptions
from regard.tasks.translate import Vocabularies
from regard.training.events import Finished

EPOCHS = {"packed": packed_epoch, "cropped": cropped_epoch}


class LanguageModelJob(PlainTextJob):
    """See jobs/interface.py for what each method promises."""

    def refuse_impossible(self, recipe: Recipe) -> None:
        refuse_two_vocabularies(recipe)
        refuse_impossible(recipe)

    def choose(self, loaded: LoadedTexts, name: str, asked: Recipe) -> Tree:  # noqa: ARG002
        return choose_language_model(sum(map(len, loaded.training)))

    def prepare(self, recipe: Recipe, loaded: LoadedTexts, lexicon: Vocabularies) -> Prepared:
        options, tokeniser = recipe.task, lexicon.target
        assert isinstance(options, LanguageModelOptions)
        stream, held_out = streams(loaded, tokeniser)
        context = min(options.context, len(stream))
        rows = max(1, recipe.data.batch_tokens // context)
        shape = Rows(context, rows, recipe.training.seed, EPOCHS[options.rows], options.start_id)
        held = HeldOut(held_out, sum(map(len, loaded.validation)))
        task = LanguageModelling(stream, shape, held, recipe.loss.smoothing)
        return Prepared(recipe, loaded.report, fingerprint(loaded), lexicon, task, fresh_model(recipe, lexicon))

    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:
        """The scores of the last validation: they are of all the held-out text already."""
        task, recipe = prepared.task, prepared.recipe
        assert isinstance(task, LanguageModelling)
        with torch.no_grad():
            scores = finished.scores or task.evaluate(prepared.model)
        assert isinstance(prepared.lexicon, Vocabularies)
        held = task.held_out
        return Verdict(
            summary=f"loss {scores['loss']:.4f}, {scores['bits_per_character']:.3f} bits per character",
            usage=[f'regard generate {folder.name} --prompt "Once upon a time"'],
            scores=[
                f"## Quality on {held.characters:,} characters of held-out text ({prepared.report.origin})",
                "",
                f"- loss {scores['loss']:.4f} nats a token ({len(held.stream):,} tokens), "
                f"perplexity {scores['perplexity']:.3f}",
                f"- {scores['bits_per_character']:.4f} bits per character",
                "",
                f"Every token is predicted once, from up to {task.rows.context} before it, in rows that follow one "
                "another. Losses a token compare only between models of one vocabulary; bits per character always do.",
            ],
            text=[f"{recipe.text.kind} vocabulary of {len(prepared.lexicon.target):,} entries"],
            facts={"validation": scores},
        )
