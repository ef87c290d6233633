"""Text in; text, scores and alternatives out. Everything that speaks a model goes through here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.pairs import Pair
from regard.decoding.bulk import draw, score_pairs, translate
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.search import Hypothesis
from regard.errors import DecodingError
from regard.layers.loss import perplexity
from regard.recipe.folder import ModelFolder, read_model


@dataclass(frozen=True)
class Candidate:
    """One possible output: `score` is log p / length^penalty, `log_probability` the plain sum over its tokens."""

    text: str
    score: float
    log_probability: float
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Translation:
    """The best candidates for one input, best first; there is always one."""

    source: str
    candidates: tuple[Candidate, ...]

    @property
    def text(self) -> str:
        return self.candidates[0].text

    @property
    def score(self) -> float:
        return self.candidates[0].score


@dataclass(frozen=True)
class PairScore:
    """How probable a model finds a given target: the sum of log p, over this many tokens (the end token counts)."""

    log_probability: float
    tokens: int

    @property
    def perplexity(self) -> float:
        return perplexity(-self.log_probability / self.tokens)


NOTHING = Candidate("", 0.0, 0.0, ())
LONGEST = 10_000  # source tokens: beyond, attention takes minutes and gigabytes for what no model here was trained on


class Engine:
    """A model that is ready to speak, in torch."""

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder
        self.model = folder.model.eval()
        self.vocabularies = folder.vocabularies
        self.search = folder.recipe.decoding

    def translate(
        self, texts: Sequence[str], search: SearchOptions | None = None, prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """One translation a text, in order. A blank text stays blank. `prefixes`: how each output must begin."""
        full = with_words(texts)
        starts = None if prefixes is None else [self.start(prefixes[i]) for i in full]
        sources = self.sources(texts[i] for i in full)
        found = translate(self.model, sources, search or self.search, prefixes=starts)
        return self.spread(texts, full, found)

    def sample(self, texts: Sequence[str], options: SamplingOptions, seed: int) -> list[Translation]:
        """Random outputs in the order drawn, the same for the same text and seed."""
        full = with_words(texts)
        sources = self.sources(texts[i] for i in full)
        return self.spread(texts, full, draw(self.model, sources, options, self.search, seed))

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """log p(target | source) of each given pair."""
        sources = self.sources(pair.source for pair in pairs)
        targets = [self.vocabularies.target.encode(pair.target) for pair in pairs]
        return [PairScore(sum(line), len(line)) for line in score_pairs(self.model, sources, targets)]

    def sources(self, texts: Iterable[str]) -> list[list[int]]:
        found = []
        for text in texts:
            ids = self.vocabularies.source.encode(text)
            if len(ids) > LONGEST:
                raise DecodingError(
                    f"{text[:40]!r}…: {len(ids)} tokens in one text, expected at most {LONGEST}; split it into lines"
                )
            found.append(ids)
        return found

    def start(self, prefix: str) -> list[int]:
        """The tokens of a prefix; one that the vocabulary cannot spell would be missing from the output."""
        target = self.vocabularies.target
        ids = target.encode(prefix)
        if target.decode(ids) != prefix:
            raise DecodingError(f"prefix {prefix!r}: has characters that the vocabulary lacks; leave them out")
        return ids

    def spread(
        self, texts: Sequence[str], full: Sequence[int], found: Sequence[Sequence[Hypothesis]]
    ) -> list[Translation]:
        """Hypotheses of the texts that have words, put back among those that have none."""
        translations = [Translation(text, (NOTHING,)) for text in texts]
        for i, hypotheses in zip(full, found, strict=True):
            translations[i] = Translation(texts[i], tuple(self.candidate(h) for h in hypotheses))
        return translations

    def candidate(self, hypothesis: Hypothesis) -> Candidate:
        target = self.vocabularies.target
        names = tuple(target.name(token) for token in hypothesis.tokens)
        return Candidate(target.decode(hypothesis.tokens), hypothesis.score, hypothesis.log_probability, names)


def with_words(texts: Sequence[str]) -> list[int]:
    """The places of the texts that are not blank."""
    return [i for i, text in enumerate(texts) if text.strip()]


def load(path: str | Path) -> Engine:
    """The engine of a model directory; ModelFormatError where the directory is damaged or not ours."""
    return Engine(read_model(Path(path)))
