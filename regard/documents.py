"""Whole texts and pages: cut into sentences, translated together, put back as they were."""

from collections.abc import Sequence

from regard.decoding.options import SearchOptions
from regard.engine import Engine
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
