"""Texts in, translations out, for all models that are served: sentences, languages, deadlines, refusals."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from regard.decoding.options import SearchOptions
from regard.serving.batcher import Batcher, FullError, Question
from regard.serving.forms import Form, read
from regard.serving.languages import canonical
from regard.serving.limits import TextLimits
from regard.serving.pool import WorkerLostError, WorkerRefusedError
from regard.serving.problems import Problem
from regard.serving.wishes import OfPairs, Speak, pair
from regard.text.html import Align, by_place, read_page
from regard.text.sentences import is_sentence, split_sentences

AUTO = "auto"
SHORTEST_WAIT = 1  # seconds after which a refused text is asked for again
TOGETHER = 32  # texts of a long one that are asked for at a time, so that there is room for others
# text, codes → codes with their probability, best first
Detect = Callable[[str, Sequence[str]], list[tuple[str, float]]]


@dataclass(frozen=True)
class Served:
    """One model of one direction; `search` is how its recipe searches."""

    name: str
    source: str
    target: str
    batcher: Batcher
    search: SearchOptions


@dataclass(frozen=True)
class Wanted:
    """How texts are to be translated."""

    candidates: int = 1
    html: bool = False
    glossary: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()
    check: bool = False  # say what may be wrong


@dataclass(frozen=True)
class Said:
    """One text translated; others that it could be, best first; and what a check found in its sentences."""

    text: str
    alternatives: tuple[str, ...] = ()
    checks: tuple[dict[str, Any], ...] = ()  # of its sentences, in order

    @property
    def concerns(self) -> list[dict[str, Any]]:
        """The sentences that a person should look at, and why; null: it could not be checked."""
        return [of(check, "concerns") for check in self.checks if check["concerns"] != []]

    @property
    def measures(self) -> list[dict[str, Any]]:
        """Every sentence with its numbers."""
        return [of(check, "dependence", "confidence") for check in self.checks]


def of(check: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: check[key] for key in ("source", "target", *keys)}


class Service:
    """`models` by direction; of several for one the first translates, and all can be compared."""

    def __init__(self, models: Sequence[Served], limits: TextLimits, detect: Detect) -> None:
        self.limits, self.detector = limits, detect
        self.models: dict[tuple[str, str], list[Served]] = {}
        for model in models:
            self.models.setdefault((model.source, model.target), []).append(model)
        self.codes = sorted({code for direction in self.models for code in direction})  # that somebody can name

    def direction(self, source: str, target: str) -> list[Served]:
        """The models of this direction; none where both are the same language."""
        source, target = self.known(source), self.known(target)
        if source == target:
            return []
        found = self.models.get((source, target))
        if found is None:
            raise Problem(400, f"{target} is not available as a target for {source}")
        return found

    def known(self, code: str) -> str:
        """The one code of all that mean the same."""
        found = canonical(code)
        if found not in self.codes:
            raise Problem(400, f"{found:.40} is not supported")
        return found

    def detect(self, text: str, target: str | None = None, *, html: bool = False) -> list[tuple[str, float]]:
        """Languages with their probability, best first: all, or those that can be translated into the target.

        Of a page only its sentences count: names of tags and attributes look like English.
        """
        into = None if target is None else self.known(target)
        codes = [code for code in self.codes if into in (None, code) or (code, into) in self.models]
        return self.detector(" ".join(read_page(text).sentences) if html else text, codes)

    def counted(self, texts: Sequence[str]) -> int:
        """How many characters; refused where there are too many of them, or of texts."""
        count = sum(map(len, texts))
        for found, most in ((len(texts), self.limits.texts), (count, self.limits.characters)):
            if found > most:
                raise Problem(400, f"Invalid request: request ({found}) exceeds text limit ({most})")
        return count

    # ---------------------------------------------------------------- translations
    async def translate(self, sources: Sequence[str], target: str, texts: Sequence[str], wanted: Wanted) -> list[Said]:
        """Each text from its language into the target; one that is already in it stays as it is."""
        models = [self.direction(source, target) for source in sources]
        said = [Said(text) for text in texts]
        order = sorted((i for i in range(len(texts)) if models[i]), key=lambda i: models[i][0].source)
        groups = [list(group) for _, group in groupby(order, key=lambda i: models[i][0].source)]
        async with answering(self.limits.seconds):
            found = await together(
                [self.spoken(models[group[0]][0], [texts[i] for i in group], wanted) for group in groups]
            )
        for group, some in zip(groups, found, strict=True):
            for i, one in zip(group, some, strict=True):
                said[i] = one
        return said

    async def spoken(self, model: Served, texts: Sequence[str], wanted: Wanted) -> list[Said]:
        """Each text sentence by sentence, with its white space or its tags as they were."""
        forms = [read(text, model.source, html=wanted.html) for text in texts]
        sentences = list(dict.fromkeys(sentence for form in forms for sentence in form.sentences))
        asked = [sentence for sentence in sentences if says_something(sentence)]
        found = dict(zip(asked, await asking(model, asked, speech(model, wanted)), strict=True))
        said = {sentence: [one["text"] for one in found.get(sentence, [{"text": sentence}])] for sentence in sentences}
        pages = [Candidates(form, [said[sentence] for sentence in form.sentences]) for form in forms]
        align = await linking(model, pages) if wanted.html else by_place
        checks = await checked(model, {one: said[one][0] for one in asked}) if wanted.check else {}
        return [page.said(align, checks) for page in pages]

    async def stream(self, model: Served, text: str, wanted: Wanted) -> AsyncGenerator[tuple[str, str], None]:
        """Each piece of one text with its translation, as soon as it and all before it are there; one time for all.

        There is no piece before the model has said the first sentence: a failure known by then is raised before it.
        """
        pieces, gate, question = split_sentences(text, model.source), asyncio.Semaphore(TOGETHER), speech(model, wanted)
        began = asyncio.get_running_loop().time()

        async def ask(piece: str) -> str:
            async with gate:
                found: str = (await asking(model, [piece], question))[0][0]["text"]
            return found

        work = {
            place: asyncio.ensure_future(ask(piece))
            for place, piece in enumerate(pieces)
            if is_sentence(piece) and says_something(piece)
        }
        try:
            async with answering(self.limits.seconds, began):
                await first_said(list(work.values()))
            for place, piece in enumerate(pieces):
                said = piece
                if place in work:
                    async with answering(self.limits.seconds, began):
                        said = await work[place]
                yield piece, said
        finally:
            for task in work.values():
                task.cancel()
            await asyncio.gather(*work.values(), return_exceptions=True)

    # ---------------------------------------------------------------- about one sentence, or given pairs
    async def continued(self, model: Served, sentence: str, prefix: str, wanted: Wanted) -> list[dict[str, Any]]:
        """The best translations of one sentence that begin in this way, with their scores."""
        search = wider(model.search, wanted.candidates)
        question = Speak(search, prefix, scored=True, glossary=wanted.glossary, keep=wanted.keep)
        found: list[dict[str, Any]] = await self.one(model, sentence, question)
        return found

    async def score(self, model: Served, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        async with answering(self.limits.seconds):
            return await asking(model, [pair(*one) for one in pairs], OfPairs("score"))

    async def links(self, model: Served, pairs: Sequence[tuple[str, str]]) -> list[list[list[int]]]:
        """Which words of given translations stand for which of their sources, as the model sees it."""
        async with answering(self.limits.seconds):
            return await asking(model, [pair(*one) for one in pairs], OfPairs("link"))

    async def compare(self, models: Sequence[Served], text: str) -> list[tuple[str, str]]:
        """What each model makes of the text, by its name."""
        async with answering(self.limits.seconds):
            found = await together([self.spoken(model, [text], Wanted()) for model in models])
        return [(model.name, said.text) for model, (said,) in zip(models, found, strict=True)]

    async def one(self, model: Served, text: str, question: Question) -> Any:
        async with answering(self.limits.seconds):
            return (await asking(model, [text], question))[0]


# ---------------------------------------------------------------- asking
@asynccontextmanager
async def answering(seconds: float, began: float | None = None) -> AsyncIterator[None]:
    """Turns what can happen to a batch into what a client is told. The time began when it says, else it begins now."""
    try:
        async with asyncio.timeout_at((asyncio.get_running_loop().time() if began is None else began) + seconds):
            yield
    except TimeoutError:
        raise Problem(504, f"Timeout: no answer within {seconds:g} seconds") from None
    except FullError:
        raise Problem(429, "Slowdown: too many texts are waiting") from None
    except WorkerLostError:
        raise Problem(503, "The model failed on this batch; try again") from None
    except WorkerRefusedError as error:
        if error.kind == "DecodingError":  # about the text that was sent
            raise Problem(422, f"Invalid request: {error}") from None
        if error.kind == "ModelFormatError":  # it speaks, but cannot be looked into; the rest is about our files
            raise Problem(422, "Invalid request: this model translates, but cannot be looked into") from None
        raise Problem(500, "The model failed on this text") from None


async def asking(model: Served, texts: Sequence[str], question: Question) -> list[Any]:
    return await model.batcher.answer(texts, question) if texts else []


async def first_said(work: Sequence["asyncio.Task[str]"]) -> None:
    """Waits until the first has its answer, or any of them has failed, which is raised."""
    left = set(work)
    while left and not work[0].done():
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


async def together(work: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """All results; where one fails the others are given up."""
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def speech(model: Served, wanted: Wanted) -> Speak:
    search = wider(model.search, wanted.candidates) if wanted.candidates > 1 else model.search
    return Speak(search, glossary=wanted.glossary, keep=wanted.keep)


def wider(search: SearchOptions, candidates: int) -> SearchOptions:
    return search.model_copy(update={"beam": max(search.beam, candidates), "n_best": candidates})


def says_something(sentence: str) -> bool:
    """Whether there is a letter or a figure in it: signs and emoji need no translation."""
    return any(character.isalnum() for character in sentence)


# ---------------------------------------------------------------- whole texts
@dataclass(frozen=True)
class Candidates:
    """A text and the translations of its sentences, several of each, best first."""

    form: Form
    sentences: Sequence[Sequence[str]]

    def ranked(self, align: Align) -> list[str]:
        """Whole texts: the k-th has the k-th of each sentence, or the last there is."""
        ranks = range(max(map(len, self.sentences), default=1))
        return [self.form.joined([one[min(rank, len(one) - 1)] for one in self.sentences], align) for rank in ranks]

    def said(self, align: Align, checks: dict[str, dict[str, Any]]) -> Said:
        best, *others = self.ranked(align)
        found = [checks[sentence] for sentence in self.form.sentences if sentence in checks]
        return Said(best, tuple(dict.fromkeys(one for one in others if one != best)), tuple(found))


async def linking(model: Served, pages: Sequence[Candidates]) -> Align:
    """Which words stand for which, asked of the model for all sentences that have tags in them.

    By place where too many texts wait: what is translated is not thrown away for that.
    """
    wanted: dict[tuple[str, str], str] = {}

    def note(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
        wanted[" ".join(source), " ".join(target)] = pair(" ".join(source), " ".join(target))
        return []

    for page in pages:
        page.ranked(note)
    links: dict[tuple[str, str], list[list[int]]] = {}
    with suppress(FullError):
        links = dict(zip(wanted, await asking(model, list(wanted.values()), OfPairs("align")), strict=True))

    def align(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
        found = links.get((" ".join(source), " ".join(target)))
        return by_place(source, target) if found is None else [(i, j) for i, j in found]

    return align


async def checked(model: Served, said: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Of each sentence its translation, why a person should look at it, and what was measured."""
    said = {source: target for source, target in said.items() if target.strip()}
    found = await asking(model, [pair(*one) for one in said.items()], OfPairs("check"))
    return {
        source: {"source": source, "target": target, **check}
        for (source, target), check in zip(said.items(), found, strict=True)
    }
