"""What is asked of a batch of texts: the same for all of them, so that they can be translated together."""

import json
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from regard.decoding.options import SearchOptions


@dataclass(frozen=True)
class Speak:
    """Translate with this search; `prefix` is how every output begins."""

    search: SearchOptions
    prefix: str | None = None
    scored: bool = False  # somebody wants scores or tokens, though of one candidate
    glossary: tuple[tuple[str, str], ...] = ()  # source term, target term
    keep: tuple[str, ...] = ()  # terms that stay as they are

    @cached_property
    def key(self) -> Hashable:
        return "speak", self.search.model_dump_json(), self.prefix, self.scored, self.glossary, self.keep

    def ask(self, texts: Sequence[str]) -> Any:
        plain = self.search.n_best == 1 and self.prefix is None and not self.scored
        wanted = {"do": "write"} if plain else {"do": "translate", "prefix": self.prefix}
        kept = {"glossary": dict(self.glossary), "keep": self.keep}
        return {**wanted, **kept, "texts": list(texts), "search": self.search.model_dump()}


@dataclass(frozen=True)
class Explain:
    """What the model looked at while it wrote, for each text by itself."""

    target: str | None  # what it is to have written; none: what it writes
    alternatives: int  # that are named for each token
    method: str | None = None  # by which it is said what the output depends on, beside attention
    check: bool = False  # say what may be wrong

    @property
    def key(self) -> Hashable:
        return "explain", self.target, self.alternatives, self.method, self.check

    def ask(self, texts: Sequence[str]) -> Any:
        return {"do": "explain", "texts": list(texts), **asdict(self)}


@dataclass(frozen=True)
class OfPairs:
    """Something about given translations: how probable they are (score), what is wrong with them (check), which words
    stand for which (link), and so that tags can move with them (align). A text of such a batch is a `pair`."""

    do: Literal["score", "check", "link", "align"]

    @property
    def key(self) -> Hashable:
        return self.do

    def ask(self, texts: Sequence[str]) -> Any:
        return {"do": self.do, "texts": list(texts)}


def pair(source: str, target: str) -> str:
    return json.dumps([source, target])
