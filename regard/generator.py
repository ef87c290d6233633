"""A language model that is ready to write: a prompt in, what follows it out, piece by piece."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.data.packing import cut_rows, group, join, pack
from regard.decoding.bulk import NEVER
from regard.decoding.continuing import follow
from regard.decoding.options import SamplingOptions
from regard.decoding.search import Ban
from regard.errors import DecodingError
from regard.layers.loss import perplexity
from regard.recipe.folder import ModelFolder, read_model
from regard.tasks.language_model import Batch, cross_entropy
from regard.tasks.options import LanguageModelOptions
from regard.text.special import EOS
from regard.text.tokeniser import Tokeniser

UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # how the first bytes of a character look before the last ones come
LONGEST_CHARACTER = 4  # bytes
BATCH_TOKENS = 4096


@dataclass(frozen=True)
class TextScore:
    """How probable a model finds a text: the sum of log p, over this many tokens (the end token counts)."""

    log_probability: float
    tokens: int
    characters: int

    @property
    def perplexity(self) -> float:
        return perplexity(-self.log_probability / self.tokens)

    @property
    def bits_per_character(self) -> float:
        return -self.log_probability / math.log(2) / self.characters


class Generator:
    """Continues texts, and says how probable it finds them."""

    def __init__(self, folder: ModelFolder) -> None:
        options = folder.recipe.task
        assert isinstance(options, LanguageModelOptions)
        self.folder, self.context, self.start = folder, options.context, options.start_id
        self.model, self.tokeniser = folder.model.eval(), folder.vocabularies.target

    def generate(self, prompt: str, options: SamplingOptions, *, limit: int, seed: int) -> Iterator[str]:
        """The text after the prompt, in pieces as they are drawn, until the document ends or after `limit` tokens.

        An empty prompt begins a document. The same prompt, options and seed give the same text.
        """
        start = [self.start, *self.tokeniser.encode(prompt)]
        generator = torch.Generator().manual_seed(seed)
        drawn = follow(
            self.model.decoder, start, options, limit=limit, context=self.context, generator=generator,
            adjust=(Ban(NEVER),),
        )  # fmt: skip
        return readable(self.tokeniser, start[-1], until_end(drawn))

    @torch.inference_mode()
    def score(self, text: str) -> TextScore:
        """log p of the text and its end, in rows of the context that follow one another."""
        if not text:
            raise DecodingError("score: an empty text has no tokens; give some text")
        stream = join([self.tokeniser.encode(text)])
        context = min(self.context, len(stream))
        total = 0.0
        for plan in group(pack(len(stream), context), max(1, BATCH_TOKENS // context)):
            inputs, targets = (torch.from_numpy(part).long() for part in cut_rows(stream, plan, self.start))
            total += float(cross_entropy(self.model, Batch(inputs, targets), 0.0).total)
        return TextScore(-total, len(stream), len(text))


def until_end(tokens: Iterable[int]) -> Iterator[int]:
    for token in tokens:
        if token == EOS:
            return
        yield token


def readable(tokeniser: Tokeniser, before: int, tokens: Iterable[int]) -> Iterator[str]:
    """The text that each token adds after the token `before`; a character of several bytes comes with its last one."""
    waiting: list[int] = []
    for token in tokens:
        waiting.append(token)
        # What a token adds depends on its neighbour alone: whether a space stands before it.
        text = tokeniser.decode([before, *waiting])[len(tokeniser.decode([before])) :]
        if text.endswith(UNFINISHED) and len(waiting) < LONGEST_CHARACTER:
            continue
        before, waiting = token, []
        if text:
            yield text
    if waiting:
        yield tokeniser.decode([before, *waiting])[len(tokeniser.decode([before])) :]


def load_generator(path: str | Path) -> Generator:
    """The language model in this directory; ModelFormatError where it is damaged, or learned something else."""
    folder = read_model(Path(path), "language-model")
    return Generator(folder)
