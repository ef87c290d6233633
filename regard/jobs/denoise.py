"""Writing what was left out as a job: plain text, one vocabulary with sentinels, perplexity. What T5 begins with."""

from pathlib import Path

import torch

from regard.data.plain import LoadedTexts
from regard.data.spans import find_sentinels
from regard.jobs.interface import Prepared, Verdict
from regard.jobs.plain_text import PlainTextJob, fingerprint, refuse_noise, refuse_two_vocabularies, streams
from regard.recipe.folder import fresh_model, refuse_impossible
from regard.recipe.presets import choose_denoiser
from regard.recipe.recipe import Recipe, Tree
from regard.tasks.denoise import Corruption, Denoising
from regard.tasks.options import DenoiseOptions
from regard.tasks.translate import Vocabularies
from regard.training.events import Finished


class DenoiseJob(PlainTextJob):
    """See jobs/interface.py for what each method promises."""

    def refuse_impossible(self, recipe: Recipe) -> None:
        refuse_two_vocabularies(recipe)
        refuse_noise(recipe, "denoise, which leaves out tokens anyway")
        refuse_impossible(recipe)

    def choose(self, loaded: LoadedTexts, name: str, asked: Recipe) -> Tree:  # noqa: ARG002
        return choose_denoiser(sum(map(len, loaded.training)), name)

    def prepare(self, recipe: Recipe, loaded: LoadedTexts, lexicon: Vocabularies) -> Prepared:
        options, tokeniser = recipe.task, lexicon.target
        assert isinstance(options, DenoiseOptions)
        stream, held_out = streams(loaded, tokeniser)
        rows = max(1, recipe.data.batch_tokens // options.context)
        corruption = Corruption(options, find_sentinels(tokeniser), rows, recipe.training.seed)
        task = Denoising(stream, held_out, corruption, recipe.loss.smoothing)
        return Prepared(recipe, loaded.report, fingerprint(loaded), lexicon, task, fresh_model(recipe, lexicon))

    def judge(self, prepared: Prepared, folder: Path, finished: Finished) -> Verdict:
        """The scores of the last validation: they are of all the held-out text already."""
        task, options, lexicon = prepared.task, prepared.recipe.task, prepared.lexicon
        assert isinstance(task, Denoising)
        assert isinstance(options, DenoiseOptions)
        assert isinstance(lexicon, Vocabularies)
        with torch.no_grad():
            scores = finished.scores or task.evaluate(prepared.model)
        return Verdict(
            summary=f"loss {scores['loss']:.4f}, perplexity {scores['perplexity']:.3f}",
            usage=[
                f"regard train tasks.yaml --start {folder.name} --out model",
                f'echo "Some text <extra_id_0> in it." | regard translate {folder.name}',
            ],
            scores=[
                f"## Quality on {len(task.held_out):,} tokens of held-out text ({prepared.report.origin})",
                "",
                f"- loss {scores['loss']:.4f} nats a token that was left out, perplexity {scores['perplexity']:.3f}",
                "",
                f"{options.density:.0%} of the tokens were left out, in stretches of {options.mean_length:g} on "
                f"average, rows of {options.context} tokens, the same at every validation. Sentinels and ends count as "
                "tokens. Losses a token compare only between models of one vocabulary.",
            ],
            text=[
                f"{prepared.recipe.text.kind} vocabulary of {len(lexicon.target):,} entries, "
                f"{len(task.corruption.sentinels)} of them sentinels"
            ],
            facts={"validation": scores},
        )
