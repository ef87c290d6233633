"""Text in; text, scores and alternatives out. Everything that speaks a model goes through here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, overload, runtime_checkable

from regard.data.pairs import Pair
from regard.decoding.bulk import LONGEST, draw, score_pairs, translate, write
from regard.decoding.constrained import longest, translate_with
from regard.decoding.ensemble import together
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.phrases import Phrase, Seams, Wanted, phrases_of
from regard.decoding.shortlist import Shortlist
from regard.errors import DecodingError, ModelFormatError
from regard.exporting.ctranslate2 import Exported, is_exported, open_model
from regard.exporting.search import Searcher
from regard.layers.loss import perplexity
from regard.recipe.folder import ModelFolder, read_model
from regard.recipe.inference import for_inference
from regard.tasks.translate import Vocabularies
from regard.text.spelling import Speller, can_read


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


@runtime_checkable
class Engine(Protocol):
    """A model that is ready to speak, whatever computes it. `search` is how its recipe searches."""

    search: SearchOptions

    def translate(
        self,
        texts: Sequence[str],
        search: SearchOptions | None = None,
        prefixes: Sequence[str] | None = None,
        required: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        """One translation a text, in order. A blank text stays blank. `prefixes`: how each output must begin.

        `required`: for each text the words that its output must contain, each as often as it is given and not more
        often, and not as part of a longer word.
        """
        ...

    def spells(self, phrase: str) -> bool:
        """Whether the model can read this phrase, and be required to write it."""
        ...

    def fits(self, text: str, required: Sequence[str], search: SearchOptions | None = None) -> bool:
        """Whether the longest output for this text has room for these words, which it can spell."""
        ...

    def write(self, texts: Sequence[str], search: SearchOptions | None = None) -> list[str]:
        """The text of the best translation alone: what need not be known of it is not computed."""
        ...

    def sample(self, texts: Sequence[str], options: SamplingOptions, seed: int) -> list[Translation]:
        """Random outputs in the order drawn, the same for the same text and seed."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """log p(target | source) of each given pair."""
        ...


class TorchEngine:
    """An Engine that computes with torch: every family, every way to decode.

    With a shortlist, a search chooses among the ids that it lists for each batch, unless words are required. Scores are
    of the whole vocabulary; the share of what is not listed is estimated. With `others`, all models speak as one, by
    the mean of their probabilities; what a recipe decides is decided by that of the first.
    """

    def __init__(
        self, folder: ModelFolder, shortlist: Shortlist | None = None, others: Sequence[ModelFolder] = ()
    ) -> None:
        self.folder, self.shortlist = folder, shortlist
        members = [folder, *others]
        self.model = together([member.model.eval() for member in members])
        self.speaker = together([for_inference(member.recipe.model, member.model) for member in members])
        self.vocabularies = folder.vocabularies
        self.search = folder.recipe.decoding
        self.words = Words(folder.vocabularies)

    def translate(
        self,
        texts: Sequence[str],
        search: SearchOptions | None = None,
        prefixes: Sequence[str] | None = None,
        required: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        full, sources, starts = self.words.read(texts, prefixes)
        options = search or self.search
        if required is None:
            found = translate(self.speaker, sources, options, prefixes=starts, shortlist=self.shortlist)
        else:
            phrases = self.words.phrases(required, texts, full)
            found = translate_with(self.speaker, sources, options, phrases, self.words.seams, prefixes=starts)
        return self.words.spread(texts, full, found)

    def spells(self, phrase: str) -> bool:
        return can_read(self.vocabularies.source, phrase) and bool(self.words.speller.spellings(phrase))

    def fits(self, text: str, required: Sequence[str], search: SearchOptions | None = None) -> bool:
        wanted = Wanted(self.words.phrases([required], [text], [0])[0], self.words.seams)
        source = len(self.vocabularies.source.encode(text)) + 1  # the end token
        return wanted.tokens < longest(wanted, source, search or self.search)

    def write(self, texts: Sequence[str], search: SearchOptions | None = None) -> list[str]:
        full, sources, _ = self.words.read(texts)
        lines = write(self.speaker, sources, search or self.search, shortlist=self.shortlist)
        found = dict(zip(full, lines, strict=True))
        return [self.vocabularies.target.decode(found[i]) if i in found else "" for i in range(len(texts))]

    def sample(self, texts: Sequence[str], options: SamplingOptions, seed: int) -> list[Translation]:
        full, sources, _ = self.words.read(texts)
        return self.words.spread(texts, full, draw(self.speaker, sources, options, self.search, seed))

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        sources, targets = self.words.read_pairs(pairs)
        return [PairScore(sum(line), len(line)) for line in score_pairs(self.model, sources, targets)]


class CTranslate2Engine:
    """An Engine that computes with CTranslate2: Transformers, by search only, perhaps in 8 bits."""

    def __init__(self, exported: Exported) -> None:
        self.searcher = Searcher(exported)
        self.search = exported.recipe.decoding
        self.words = Words(exported.vocabularies)

    def translate(
        self,
        texts: Sequence[str],
        search: SearchOptions | None = None,
        prefixes: Sequence[str] | None = None,
        required: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        full, sources, starts = self.words.read(texts, prefixes)
        if required is not None:
            raise DecodingError("required: the ctranslate2 engine cannot be held to given words; use the torch engine")
        return self.words.spread(texts, full, self.searcher.translate(sources, search or self.search, starts))

    def spells(self, phrase: str) -> bool:  # noqa: ARG002
        """Never: there is no way to require anything here."""
        return False

    def fits(self, text: str, required: Sequence[str], search: SearchOptions | None = None) -> bool:  # noqa: ARG002
        """Only nothing."""
        return not required

    def write(self, texts: Sequence[str], search: SearchOptions | None = None) -> list[str]:
        return [translation.text for translation in self.translate(texts, search)]

    def sample(self, texts: Sequence[str], options: SamplingOptions, seed: int) -> list[Translation]:  # noqa: ARG002
        """Refused: CTranslate2 draws from another distribution, and not by our seeds."""
        raise DecodingError("sample: the ctranslate2 engine only searches; use the torch engine")

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        sources, targets = self.words.read_pairs(pairs)
        return [PairScore(sum(line), len(line)) for line in self.searcher.score(sources, targets)]


@runtime_checkable
class Found(Protocol):
    """What a search found, in ids."""

    @property
    def tokens(self) -> tuple[int, ...]: ...
    @property
    def score(self) -> float: ...
    @property
    def log_probability(self) -> float: ...


class Words:
    """Texts to ids, and what was found for them back to texts."""

    def __init__(self, vocabularies: Vocabularies) -> None:
        self.vocabularies = vocabularies

    def read(
        self, texts: Sequence[str], prefixes: Sequence[str] | None = None
    ) -> tuple[list[int], list[list[int]], list[list[int]] | None]:
        """Which texts have words, their ids, and those of their prefixes."""
        full = with_words(texts)
        starts = None if prefixes is None else [self.start(prefixes[i]) for i in full]
        return full, self.sources(texts[i] for i in full), starts

    def read_pairs(self, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
        sources = self.sources(pair.source for pair in pairs)
        return sources, [self.vocabularies.target.encode(pair.target) for pair in pairs]

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

    @cached_property
    def speller(self) -> Speller:
        """Asks the vocabulary for each of its tokens, so it is made when the first words are required."""
        return Speller(self.vocabularies.target)

    @property
    def seams(self) -> Seams:
        return Seams(self.speller.begins, self.speller.ends)

    def phrases(
        self, required: Sequence[Sequence[str]], texts: Sequence[str], full: Sequence[int]
    ) -> list[list[Phrase]]:
        """What the outputs of the texts that have words must contain."""
        if len(required) != len(texts):
            raise DecodingError(f"required: {len(required)} lists for {len(texts)} texts; give one each, [] for none")
        return [phrases_of(self.spellings(phrase) for phrase in required[i]) for i in full]

    def spellings(self, phrase: str) -> tuple[tuple[int, ...], ...]:
        if not phrase.strip() or phrase != phrase.strip():
            raise DecodingError(f"required {phrase!r}: expected words without white space around them")
        found = self.speller.spellings(phrase)
        if not found:
            raise DecodingError(f"required {phrase!r}: has characters that the vocabulary lacks; require other words")
        return tuple(found)

    def spread(self, texts: Sequence[str], full: Sequence[int], found: Sequence[Sequence[Found]]) -> list[Translation]:
        """What was found for the texts that have words, put back among those that have none."""
        translations = [Translation(text, (NOTHING,)) for text in texts]
        for i, hypotheses in zip(full, found, strict=True):
            translations[i] = Translation(texts[i], tuple(self.candidate(h) for h in hypotheses))
        return translations

    def candidate(self, found: Found) -> Candidate:
        target = self.vocabularies.target
        names = tuple(target.name(token) for token in found.tokens)
        return Candidate(target.decode(found.tokens), found.score, found.log_probability, names)


def with_words(texts: Sequence[str]) -> list[int]:
    """The places of the texts that are not blank."""
    return [i for i, text in enumerate(texts) if text.strip()]


def shortlist_of(folder: ModelFolder) -> Shortlist:
    if folder.shortlist is None:
        raise DecodingError(
            f"{folder.path}: no shortlist in it, as its vocabulary is small or an older Regard trained it; "
            "go without, or train again"
        )
    return folder.shortlist


def refuse_other_words(one: ModelFolder, other: ModelFolder) -> None:
    """Models can only speak together if an id is the same word to all of them, on both sides."""
    for name in sorted(path.name for path in one.path.iterdir() if path.stem in ("shared", "source", "target")):
        theirs = other.path / name
        if not theirs.exists() or theirs.read_bytes() != (one.path / name).read_bytes():
            raise ModelFormatError(
                f"{theirs}: not the vocabulary of {one.path}, so the two cannot speak together; "
                f"train one of them again with --vocabulary {one.path}"
            )


@overload
def load(
    path: str | Path, engine: Literal["torch"] = "torch", *, shortlist: bool = False, others: Sequence[str | Path] = ()
) -> TorchEngine: ...
@overload
def load(path: str | Path, engine: str, *, shortlist: bool = False, others: Sequence[str | Path] = ()) -> Engine: ...
def load(
    path: str | Path, engine: str = "torch", *, shortlist: bool = False, others: Sequence[str | Path] = ()
) -> Engine:
    """The engine of a model directory; ModelFormatError where the directory is damaged or not ours.

    "torch" speaks every model; "ctranslate2" speaks those that `regard export` can write, exported already or not.
    `shortlist`: search faster, among the target tokens that the training text showed for each source token.
    `others`: models of the same vocabulary that speak together with this one.
    """
    path = Path(path)
    for asked, name in ((shortlist, "shortlist"), (others, "ensemble")):
        if asked and engine != "torch":
            raise DecodingError(f"{name}: the {engine} engine does not know it; use the torch engine")
    if shortlist and others:
        raise DecodingError("shortlist: belongs to one model, found several; leave one of the two out")
    if engine == "ctranslate2":
        return CTranslate2Engine(open_model(path))
    if engine != "torch":
        raise DecodingError(f"engine {engine!r}: not known; use 'torch' or 'ctranslate2'")
    folder = open_folder(path)
    members = [open_folder(Path(other)) for other in others]
    for member in members:
        refuse_other_words(folder, member)
    return TorchEngine(folder, shortlist_of(folder) if shortlist else None, members)


def open_folder(path: Path) -> ModelFolder:
    refuse_exported(path)
    return read_model(path)


def refuse_exported(path: Path) -> None:
    if is_exported(path):
        raise ModelFormatError(f"{path}: was exported for CTranslate2; use the ctranslate2 engine, or the model itself")
