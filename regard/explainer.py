"""A model that is ready to be looked into: a text in, an explanation of what the model made of it out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import nn

from regard.data.treebank import sentence_of
from regard.decoding.bulk import translate
from regard.decoding.within import search_within
from regard.errors import DecodingError, ModelFormatError
from regard.evaluation.trees import ESCAPES
from regard.explaining.concerns import check_output
from regard.explaining.dependence import Wanted, Watch, depend, last
from regard.explaining.explain import Output, explain_output, explain_reading
from regard.explaining.explanation import Explanation, Method, Side
from regard.explaining.labels import Choice, explain_labels
from regard.explaining.sides import given, special, written
from regard.exporting.ctranslate2 import is_exported
from regard.recipe.folder import open_finished, read_model
from regard.recipe.inference import for_inference
from regard.recipe.reading import ClassifierFolder, read_classifier, read_masked
from regard.tasks.options import LanguageModelOptions, MaskedOptions, ParseOptions
from regard.tasks.parse import grammar_of
from regard.text.special import BOS, EOS
from regard.text.tokeniser import Tokeniser
from regard.text.unicode import utf8

LONGEST = 512  # tokens of one text: an explanation holds a weight for every pair of them, in every head


@dataclass(frozen=True)
class Asked:
    """What to explain of a text: the model's own best outputs, or a given one; and how many alternatives to name.

    `maps`: also what the output depends on, by these methods; RISE with at most so many `masks`, whose estimates
    `watch` takes as they come. `faithful`: how far to believe these maps, or if none is named, all that the model has.
    `concerns`: also what is wrong with the output.
    """

    target: str | None = None
    n_best: int = 1
    alternatives: int = 5
    maps: tuple[Method, ...] = ()
    masks: int | None = None
    faithful: bool = False
    concerns: bool = False
    watch: Watch = last

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.maps, self.masks, self.faithful, self.watch)


@runtime_checkable
class Explainer(Protocol):
    """Whatever the model does with a text, it can say what it looked at meanwhile.

    `mappable`: RISE can tell what its output depends on. `checkable`: concerns are of use for what it writes.
    """

    mappable: bool
    checkable: bool

    def explain(self, text: str, asked: Asked) -> list[Explanation]:
        """One explanation for each output, best first; a model that writes none gives one of its reading."""
        ...


class TranslationExplainer:
    """Explains what an encoder–decoder writes: found by the search of its recipe, replayed by the reference."""

    mappable, checkable = True, True

    def __init__(self, path: Path, task: str = "translate") -> None:
        folder = read_model(path, task)
        self.name, self.model, self.search = path.resolve().name, folder.model.eval(), folder.recipe.decoding
        self.speaker = for_inference(folder.recipe.model, self.model)
        self.vocabularies, self.task = folder.vocabularies, folder.recipe.task

    def explain(self, text: str, asked: Asked) -> list[Explanation]:
        source = readable(self.vocabularies.source, text, "text", after=(EOS,))
        return [self.explained(source, target, asked) for target in self.targets(source, asked)]

    def explained(self, source: Side, target: Side, asked: Asked) -> Explanation:
        output = Output(self.name, source, special(BOS, 0), target, self.search.length_penalty)
        found = explain_output(self.model, output, self.vocabularies.target, asked.alternatives)
        found = depend(self.model, found, asked.wanted)
        if not asked.concerns:
            return found
        return found.model_copy(update=vars(check_output(self.model, source, target)))

    def targets(self, source: Side, asked: Asked) -> list[Side]:
        """The given target, or those that the search finds; one that the length limit cut has no end token."""
        tokeniser = self.vocabularies.target
        if asked.target is not None:
            return [readable(tokeniser, asked.target, "target", after=(EOS,))]
        wider = {"beam": max(self.search.beam, asked.n_best), "n_best": asked.n_best}
        ids = [token.id for token in source.tokens[:-1]]
        (found,) = translate(self.speaker, [ids], self.search.model_copy(update=wider))
        return [written(tokeniser, one.tokens, after=(EOS,) if one.finished else ()) for one in found]


class ParserExplainer:
    """Explains a parser as the translator that it is, from words to brackets: a tree is found within the grammar."""

    mappable, checkable = True, False  # brackets repeat themselves in every good tree

    def __init__(self, path: Path) -> None:
        self.translator = TranslationExplainer(path, "parse")
        options, self.search = self.translator.task, self.translator.search
        assert isinstance(options, ParseOptions)
        self.vocabularies = self.translator.vocabularies
        self.grammar = grammar_of(self.vocabularies.target, chains=options.chains, cap=self.search.cap)

    def explain(self, text: str, asked: Asked) -> list[Explanation]:
        words = text.split()
        sentence = sentence_of(words, self.grammar.numbers).translate(ESCAPES)
        source = readable(self.vocabularies.source, sentence, "text", after=(EOS,))
        if len(words) > self.grammar.most_words:
            raise DecodingError(
                f"text {text[:40]!r}…: {len(words)} words, expected at most {self.grammar.most_words}, which this "
                "model's decoding.cap allows; split it into sentences"
            )
        targets = self.targets(source, len(words), asked)
        return [self.translator.explained(source, target, asked) for target in targets]

    def targets(self, source: Side, words: int, asked: Asked) -> list[Side]:
        """The given brackets, or those of the best trees."""
        tokeniser = self.vocabularies.target
        if asked.target is not None:
            return [readable(tokeniser, asked.target, "target", after=(EOS,))]
        wider = {"beam": max(self.search.beam, asked.n_best), "n_best": asked.n_best}
        ids, search = [token.id for token in source.tokens[:-1]], self.search.model_copy(update=wider)
        (found,) = search_within(self.translator.speaker, [ids], search, lambda _: self.grammar.over([words]))
        return [written(tokeniser, one.tokens, after=(EOS,) if one.finished else ()) for one in found]


class TextExplainer:
    """Explains how a language model reads a text: what it expected in the place of each token."""

    mappable, checkable = True, False

    def __init__(self, path: Path) -> None:
        folder = read_model(path, "language-model")
        options = folder.recipe.task
        assert isinstance(options, LanguageModelOptions)
        self.name, self.model, self.tokeniser = path.resolve().name, folder.model.eval(), folder.vocabularies.target
        self.start, self.longest = special(options.start_id, 0), options.context

    def explain(self, text: str, asked: Asked) -> list[Explanation]:
        refuse_outputs(asked, "a language model goes on from its text")
        target = readable(self.tokeniser, text, "text", longest=self.longest)
        output = Output(self.name, None, self.start, target)
        found = explain_output(self.model, output, self.tokeniser, asked.alternatives)
        return [depend(self.model, found, asked.wanted)]


class ReadingExplainer:
    """Explains how an encoder reads a text; `longest` counts the tokens that it learned to read together."""

    mappable, checkable = False, False

    def __init__(self, name: str, model: nn.Module, tokeniser: Tokeniser, longest: int) -> None:
        self.name, self.model, self.tokeniser, self.longest = name, model, tokeniser, longest

    def explain(self, text: str, asked: Asked) -> list[Explanation]:
        refuse_outputs(asked, "this model reads, and writes nothing")
        refuse_maps(asked)
        source = readable(self.tokeniser, text, "text", before=(BOS,), after=(EOS,), longest=self.longest)
        return [explain_reading(self.model, self.name, source)]


class LabelExplainer:
    """Explains which label a text has: the likeliest ones, or a given one."""

    mappable, checkable = False, False

    def __init__(self, path: Path, folder: ClassifierFolder) -> None:
        self.name, self.model, self.classes = path.resolve().name, folder.model, folder.classes
        self.longest = folder.recipe.data.max_tokens

    def explain(self, text: str, asked: Asked) -> list[Explanation]:
        refuse_maps(asked)
        if asked.concerns:
            raise DecodingError("check: has no meaning here, as a label is no text; leave it out")
        source = readable(self.classes.tokeniser, text, "text", before=(BOS,), after=(EOS,), longest=self.longest)
        choice = Choice(self.classes.labels.names, asked.target, asked.n_best, asked.alternatives)
        return explain_labels(self.model, self.name, source, choice)


# ---------------------------------------------------------------- bad input
def readable(
    tokeniser: Tokeniser,
    text: str,
    name: str,
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    longest: int = LONGEST,
) -> Side:
    """The text with its tokens; one that is empty, no text, or beyond `longest` tokens is refused."""
    if not text.strip():
        raise DecodingError(f"{name}: found nothing in it, so there is nothing to explain; give a sentence")
    if utf8(text).decode() != text:  # a byte of the command line that is no UTF-8 comes as half a character
        raise DecodingError(f"{name}: holds bytes that are no UTF-8; convert it")
    side, most = given(tokeniser, text, before, after), min(longest, LONGEST)
    if len(side.tokens) > most:
        raise DecodingError(
            f"{name} {text[:40]!r}…: {len(side.tokens)} tokens, expected at most {most}; split it into sentences"
        )
    return side


def refuse_outputs(asked: Asked, why: str) -> None:
    if asked.target is not None or asked.n_best > 1:
        name = "n-best" if asked.target is None else "target"
        raise DecodingError(f"{name}: has no meaning here, as {why}; leave it out")
    if asked.concerns:
        raise DecodingError(f"check: has no meaning here, as {why}; leave it out")


def refuse_maps(asked: Asked) -> None:
    if asked.maps or asked.faithful:
        name = f"map {asked.maps[0]}" if asked.maps else "faithful"
        raise DecodingError(f"{name}: tells what written tokens depend on, and this model writes none; leave it out")


# ---------------------------------------------------------------- from a directory
def masked_explainer(path: Path) -> ReadingExplainer:
    folder = read_masked(path)
    assert isinstance(folder.recipe.task, MaskedOptions)
    return ReadingExplainer(path.resolve().name, folder.model, folder.tokeniser, folder.recipe.task.context)


def classifier_explainer(path: Path) -> Explainer:
    """A model that sorts pairs of texts has no label for one of them: what it shows is how it reads."""
    folder = read_classifier(path)
    if not folder.classes.pairs:
        return LabelExplainer(path, folder)
    return ReadingExplainer(path.resolve().name, folder.model, folder.classes.tokeniser, folder.recipe.data.max_tokens)


EXPLAINERS: dict[str, Callable[[Path], Explainer]] = {  # by task
    "translate": TranslationExplainer,
    "denoise": TranslationExplainer,
    "language-model": TextExplainer,
    "masked": masked_explainer,
    "classify": classifier_explainer,
    "parse": ParserExplainer,
}


def load_explainer(path: str | Path) -> Explainer:
    """The model in this directory; ModelFormatError where it is damaged, or reads something else than plain text."""
    folder = Path(path)
    if is_exported(folder):
        raise ModelFormatError(
            f"{folder}: was exported for CTranslate2, which shows no attention; use the model that it was made from"
        )
    task = open_finished(folder).task.kind
    if task not in EXPLAINERS:
        raise ModelFormatError(
            f"{folder}: reads no text; what it looks at is drawn by regard see {folder} IMAGE --map rise --svg FILE.svg"
        )
    return EXPLAINERS[task](folder)
