"""Whole texts and pages: cut into sentences, translated together, put back as they were."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from regard.aligner import Aligner, load_aligner
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.engine import Engine
from regard.errors import DecodingError, ModelFormatError
from regard.text.html import Align, by_place, translate_page
from regard.text.sentences import is_sentence, put_back, split_sentences


def translate_text(
    engine: Engine, text: str, search: SearchOptions | None = None, *, language: str | None = None
) -> str:
    """The text with its sentences translated and the white space between them as it was.

    `language` is that of the text (en, de, …), by whose rules sentences end.
    """
    pieces = split_sentences(text, language)
    return put_back(pieces, say(engine, [piece for piece in pieces if is_sentence(piece)], search))


def translate_html(
    engine: Engine,
    page: str,
    search: SearchOptions | None = None,
    *,
    align: Align = by_place,
    language: str | None = None,
) -> str:
    """The page with its sentences translated and its tags kept; `align` says which words stand for which."""
    return translate_page(page, lambda sentences: say(engine, sentences, search), align, language)


def say(engine: Engine, sentences: Sequence[str], search: SearchOptions | None) -> list[str]:
    """Translations, but of what has no letter or figure (a line, an emoji) itself."""
    asked = [sentence for sentence in dict.fromkeys(sentences) if any(map(str.isalnum, sentence))]
    said = dict(zip(asked, engine.write(asked, search), strict=True))
    return [said.get(sentence, sentence) for sentence in sentences]


class ByAttention:
    """An Align that asks what a model looks at while it reads the translation; opened when it is first asked.

    A model that looks at nothing (an RNN without attention, one exported for another program) aligns by place, and so
    does every model where a sentence is too long for it, or where no word looks at any other.
    """

    def __init__(self, model: Path) -> None:
        self.model = model

    def __call__(self, source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
        if self.aligner is None:
            return by_place(source, target)
        try:
            links = self.aligner.place(Pair(" ".join(source), " ".join(target)))
        except DecodingError:
            return by_place(source, target)
        return sorted(links) or by_place(source, target)

    @cached_property
    def aligner(self) -> Aligner | None:
        try:
            return load_aligner(self.model)
        except ModelFormatError:
            return None
