"""A task before every text, for a model that knows several: "translate English to German: ", or ">>fra<< "."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from regard.data.pairs import Pair
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.engine import Engine, PairScore, Translation


class Asking:
    """An Engine that asks another one with the task before every text; a blank text stays blank."""

    def __init__(self, engine: Engine, task: str) -> None:
        self.engine, self.task, self.search = engine, task, engine.search

    def asked(self, text: str) -> str:
        return self.task + text if text.strip() else text

    def translate(
        self,
        texts: Sequence[str],
        search: SearchOptions | None = None,
        prefixes: Sequence[str] | None = None,
        required: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        found = self.engine.translate([self.asked(text) for text in texts], search, prefixes, required)
        return named(found, texts)

    def spells(self, phrase: str) -> bool:
        return self.engine.spells(phrase)

    def fits(self, text: str, required: Sequence[str], search: SearchOptions | None = None) -> bool:
        return self.engine.fits(self.asked(text), required, search)

    def write(self, texts: Sequence[str], search: SearchOptions | None = None) -> list[str]:
        return self.engine.write([self.asked(text) for text in texts], search)

    def sample(self, texts: Sequence[str], options: SamplingOptions, seed: int) -> list[Translation]:
        return named(self.engine.sample([self.asked(text) for text in texts], options, seed), texts)

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        return self.engine.score([replace(pair, source=self.asked(pair.source)) for pair in pairs])


def named(found: Sequence[Translation], texts: Sequence[str]) -> list[Translation]:
    """The same translations, as those of the texts that somebody wrote."""
    return [replace(one, source=text) for one, text in zip(found, texts, strict=True)]


def without(task: str, links: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Links of a text with the task before it as links of the text itself: words are counted from its first."""
    words = len(f"{task}x".split()) - 1  # a task that ends without a space is part of the first word
    return sorted((source - words, target) for source, target in links if source >= words)
