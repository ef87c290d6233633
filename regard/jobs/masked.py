"""Naming hidden tokens as a job: plain text, one vocabulary, accuracy where something was hidden."""

from pathlib import Path

import torch

from regard.data.masking import mask_id, word_beginnings
from regard.data.plain import LoadedTexts
from regard.jobs.interface import Prepared, Verdict
from regard.jobs.plain_text import PlainTextJob, fingerprint, refuse_noise, refuse_two_vocabularies, streams
from regard.recipe.build_bert import build_masked
from regard.recipe.folder import weights_refused
from regard.recipe.reading import bert, fresh_masked
from regard.recipe.reading_presets import choose_masked
from regard.recipe.recipe import Recipe, Tree
from regard.tasks.masked import Hiding, MaskedLanguageModelling
from regard.tasks.options import MaskedOptions
from regard.tasks.translate import Vocabularies
from regard.training.events import Finished


class MaskedJob(PlainTextJob):
    """See jobs/interface.py for what each method promises."""

    def refuse_impossible(self, recipe: Recipe) -> None:
        refuse_two_vocabularies(recipe)
        refuse_noise(recipe, "masked, which hides tokens anyway")
        with weights_refused(), torch.device("meta"):
            build_masked(bert(recipe), 5, seed=0)

    def choose(self, loaded: LoadedTexts, name: str, asked: Recipe) -> Tree:  # noqa: ARG002
        return choose_masked(sum(map(len, loaded.training)))

    def prepare(self, recipe: Recipe, loaded: LoadedTexts, lexicon: Vocabularies) -> Prepared:
        options, tokeniser = recipe.task, lexicon.target
        assert isinstance(options, MaskedOptions)
        stream, held_out = streams(loaded, tokeniser)
        rows = max(1, recipe.data.batch_tokens // options.context)
        hiding = Hiding(options, word_beginnings(tokeniser), rows, recipe.training.seed)
        task = MaskedLanguageModelling(stream, held_out, hiding, recipe.loss.smoothing)
        return Prepared(recipe, loaded.report, fingerprint(loaded), lexicon, task, fresh_masked(recipe, tokeniser))

    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:
        """The scores of the last validation: they are of all the held-out text already."""
        task, options, lexicon = prepared.task, prepared.recipe.task, prepared.lexicon
        assert isinstance(task, MaskedLanguageModelling)
        assert isinstance(options, MaskedOptions)
        assert isinstance(lexicon, Vocabularies)
        with torch.no_grad():
            scores = finished.scores or task.evaluate(prepared.model)
        words = "whole words of " if options.whole_words else ""
        return Verdict(
            summary=f"loss {scores['loss']:.4f}, {scores['accuracy']:.1f} % of hidden tokens named",
            usage=[
                f'regard fill {folder.name} "Some text with a [MASK] in it."',
                f"regard embed {folder.name} < lines.txt > vectors.jsonl",
                f"regard train --labelled texts.tsv --start {folder.name} --out classifier",
            ],
            scores=[
                f"## Quality on {len(task.held_out):,} tokens of held-out text ({prepared.report.origin})",
                "",
                f"- {scores['accuracy']:.2f} % of hidden tokens named",
                f"- loss {scores['loss']:.4f} nats a hidden token, perplexity {scores['perplexity']:.3f}",
                "",
                f"{options.share:.0%} of the tokens were hidden, {words}rows of {options.context} tokens, the same at "
                "every validation. Losses a token compare only between models of one vocabulary.",
            ],
            text=[f"{prepared.recipe.text.kind} vocabulary of {mask_id(lexicon.target) + 1:,} entries, the mask one"],
            facts={"validation": scores},
        )
