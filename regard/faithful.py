"""Translations that keep what must be kept: placeholders, terms that stay as they are, and the words of a glossary.

A model is first left to itself. Only where its output lacks something, or has it once too often, does it translate
again, by a search that has to write the missing words. For what the vocabulary cannot spell something stands in that it
can, and where even that fails, the text between the placeholders is translated piece by piece.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.data.glossary import read_glossary
from regard.data.pairs import Pair
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.engine import Candidate, Engine, PairScore, Translation
from regard.errors import DecodingError
from regard.text.placeholders import KINDS, Kind, Placeholders, merged
from regard.text.words import Terms, standing

MOST = 8  # placeholders of one text that a search is held to; with more, the text is translated piece by piece
STAND_INS = ("X", "Y", "Z", "Q", "K", "W", "V", "J", "x", "y", "z", "q", "7", "8", "9", "5")
ENDS = ".!?…。"


@dataclass(frozen=True)
class Wishes:
    """What a user wants kept: placeholders of every kind, terms, and what a glossary file says of others."""

    placeholders: bool = False
    keep: tuple[str, ...] = ()
    glossary: Path | None = None

    def over(self, engine: Engine) -> Engine:
        """The engine held to these wishes; without any, the engine itself."""
        if not (self.placeholders or self.keep or self.glossary):
            return engine
        for term in self.keep:
            if not term.strip() or term != term.strip():
                raise DecodingError(f"keep {term!r}: expected words without white space around them")
        kinds: tuple[Kind, ...] = KINDS if self.placeholders else ()
        return Faithful(engine, Placeholders(kinds, self.keep), read_glossary(self.glossary) if self.glossary else {})

    def to_json(self) -> str:
        return json.dumps([self.placeholders, self.keep, str(self.glossary.resolve()) if self.glossary else None])


def wishes_from(text: str) -> Wishes:
    """What `Wishes.to_json` wrote."""
    placeholders, keep, glossary = json.loads(text)
    return Wishes(placeholders, tuple(keep), Path(glossary) if glossary else None)


@dataclass(frozen=True)
class Plan:
    """A text as the model is to read it, what its output must contain, and what stands for what in there."""

    text: str
    required: tuple[str, ...]
    stand_ins: tuple[tuple[str, str], ...]

    def restored(self, output: str) -> str:
        for name, code in self.stand_ins:
            for start in reversed(standing(output, name)):
                output = output[:start] + code + output[start + len(name) :]
        return output


class Faithful:
    """An Engine that keeps placeholders and follows a glossary (source term → target term). Draws are not changed.

    A candidate that fails is left out where another one does not. A target term counts where it is no part of a longer
    word; it may be there more often than the source term is.
    """

    def __init__(self, engine: Engine, placeholders: Placeholders, glossary: Mapping[str, str]) -> None:
        self.engine, self.search = engine, engine.search
        self.placeholders, self.glossary = placeholders, Terms(glossary)

    def translate(
        self,
        texts: Sequence[str],
        search: SearchOptions | None = None,
        prefixes: Sequence[str] | None = None,
        required: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        found = self.engine.translate(texts, search, prefixes, required)
        found = [self.without_faults(text, one) for text, one in zip(texts, found, strict=True)]
        wrong = [i for i, one in enumerate(found) if not one.candidates]
        if wrong:
            starts = None if prefixes is None else [prefixes[i] for i in wrong]
            words: list[tuple[str, ...]] = [() if required is None else tuple(required[i]) for i in wrong]
            for i, one in zip(wrong, self.again([texts[i] for i in wrong], search, starts, words), strict=True):
                found[i] = one
        return found

    def write(self, texts: Sequence[str], search: SearchOptions | None = None) -> list[str]:
        lines = self.engine.write(texts, search)
        wrong = [i for i, (text, line) in enumerate(zip(texts, lines, strict=True)) if not self.accepts(text, line)]
        nothing: list[tuple[str, ...]] = [()] * len(wrong)
        for i, one in zip(wrong, self.again([texts[i] for i in wrong], search, None, nothing), strict=True):
            lines[i] = one.text
        return lines

    def sample(self, texts: Sequence[str], options: SamplingOptions, seed: int) -> list[Translation]:
        return self.engine.sample(texts, options, seed)

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        return self.engine.score(pairs)

    def spells(self, phrase: str) -> bool:
        return self.engine.spells(phrase)

    def fits(self, text: str, required: Sequence[str], search: SearchOptions | None = None) -> bool:
        return self.engine.fits(text, required, search)

    def accepts(self, text: str, output: str) -> bool:
        targets = Counter(self.targets(text)).items()
        return self.placeholders.are_kept(text, output) and all(
            len(standing(output, target)) >= times for target, times in targets
        )

    def without_faults(self, text: str, found: Translation) -> Translation:
        """Its candidates that keep everything; perhaps none."""
        return replace(found, candidates=tuple(c for c in found.candidates if self.accepts(text, c.text)))

    def targets(self, text: str) -> list[str]:
        """The target terms that the glossary wants; within a placeholder nothing is translated."""
        spans = [(one.start, one.end) for one in self.placeholders.find(text)]
        hits = self.glossary.find(text)
        return [hit.target for hit in hits if all(hit.end <= start or end <= hit.start for start, end in spans)]

    def again(
        self,
        texts: Sequence[str],
        search: SearchOptions | None,
        prefixes: Sequence[str] | None,
        required: Sequence[tuple[str, ...]],
    ) -> list[Translation]:
        """Translations that keep everything, for texts whose first ones did not."""
        if not texts:
            return []
        plans = [(i, plan) for i, text in enumerate(texts) if (plan := self.plan(text, search)) is not None]
        found = [Translation(text, ()) for text in texts]
        if plans:
            starts = None if prefixes is None else [prefixes[i] for i, _ in plans]
            words = [(*plan.required, *required[i]) for i, plan in plans]
            answers = self.engine.translate([plan.text for _, plan in plans], search, starts, words)
            for (i, plan), answer in zip(plans, answers, strict=True):
                said = tuple(replace(c, text=plan.restored(c.text)) for c in answer.candidates)
                found[i] = self.without_faults(texts[i], Translation(texts[i], said))
        left = [i for i, one in enumerate(found) if not one.candidates]
        for i in left:
            if required[i] or (prefixes is not None and prefixes[i]):
                raise DecodingError(
                    f"{texts[i][:40]!r}: its placeholders cannot be kept beside a given prefix or required words; "
                    "leave one of the two out"
                )
        for i, one in zip(left, self.piecewise([texts[i] for i in left], search), strict=True):
            found[i] = one
        return found

    def plan(self, text: str, search: SearchOptions | None) -> Plan | None:
        """How to hold a search to what the text asks for; none if it cannot be, or if there is nothing to translate."""
        spans = merged(self.placeholders.find(text))
        outside = "".join(self.outside(text, spans))
        if len(spans) > MOST or not any(map(str.isalnum, outside)):
            return None
        free = (name for name in STAND_INS if name not in text and self.engine.spells(name))
        said, end, stand_ins, required = "", 0, [], []
        for start, stop in spans:
            code = name = text[start:stop]
            if not self.engine.spells(code):
                name = next(free, "")
                if not name:
                    return None
                stand_ins.append((name, code))
            said, end = said + text[end:start] + name, stop
            required.append(name)
        said += text[end:]
        if not self.engine.fits(said, required, search):
            return None
        return Plan(said, (*required, *self.targets(text)), tuple(stand_ins))

    def outside(self, text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
        """What stands before, between and after the spans; one more than there are."""
        starts, ends = [start for start, _ in spans], [end for _, end in spans]
        return [text[a:b] for a, b in zip([0, *ends], [*starts, len(text)], strict=True)]

    def piecewise(self, texts: Sequence[str], search: SearchOptions | None) -> list[Translation]:
        """Each text with what is between its placeholders translated on its own; the text itself if even that fails."""
        spans = [merged(self.placeholders.find(text)) for text in texts]
        parts = [self.outside(text, some) for text, some in zip(texts, spans, strict=True)]
        cores = [part.strip() for some in parts for part in some]
        asked = [core for core in dict.fromkeys(cores) if any(map(str.isalnum, core))]
        required = [self.targets(core) for core in asked]
        answers = self.engine.translate(asked, search, None, required if any(required) else None) if asked else []
        said = {core: answer.candidates[0] for core, answer in zip(asked, answers, strict=True)}
        return [self.joined(*item, said) for item in zip(texts, spans, parts, strict=True)]

    def joined(
        self, text: str, spans: Sequence[tuple[int, int]], parts: Sequence[str], said: Mapping[str, Candidate]
    ) -> Translation:
        used = [said[part.strip()] for part in parts if part.strip() in said]
        fresh = [
            part.replace(core, self.cleaned(core, said[core].text)) if (core := part.strip()) in said else part
            for part in parts
        ]
        codes = [text[start:end] for start, end in spans]
        whole = fresh[0] + "".join(code + part for code, part in zip(codes, fresh[1:], strict=True))
        tokens = tuple(token for one in used for token in one.tokens)
        total = sum((one.log_probability for one in used), 0.0)
        worst = min((one.score for one in used), default=0.0)
        kept = whole if self.placeholders.are_kept(text, whole) else text
        return Translation(text, (Candidate(kept, worst, total, tokens),))

    def cleaned(self, core: str, output: str) -> str:
        """Without placeholders that the model made up, and without a full stop where the piece had none."""
        while made_up := [one for one in self.placeholders.find(output) if one.kind != "measure"]:
            output = output[: made_up[-1].start] + output[made_up[-1].end :]
        output = output.strip()
        return output.rstrip(ENDS) if core[-1] not in ENDS else output
