"""Texts and pages, taken apart into sentences and put together again from their translations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from regard.text.html import Align, read_page
from regard.text.sentences import is_sentence, put_back, split_sentences


@runtime_checkable
class Form(Protocol):
    """Law: a text whose sentences are not changed is joined to itself; a page keeps its tags."""

    @property
    def sentences(self) -> list[str]: ...
    def joined(self, translations: Sequence[str], align: Align) -> str: ...


@dataclass(frozen=True)
class Text:
    """Sentences and the white space between them."""

    pieces: tuple[str, ...]

    @property
    def sentences(self) -> list[str]:
        return [piece for piece in self.pieces if is_sentence(piece)]

    def joined(self, translations: Sequence[str], align: Align) -> str:  # noqa: ARG002
        return put_back(self.pieces, translations)


def read(text: str, language: str, *, html: bool) -> Form:
    return read_page(text, language) if html else Text(tuple(split_sentences(text, language)))
