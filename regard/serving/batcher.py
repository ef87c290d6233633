"""Texts of many clients, translated together: those of one length, as soon as a worker is free.

While workers are busy texts wait, and those who were just answered ask again: a worker that is free waits a moment, for
as long as they come. A batch takes its share of all texts, where one share waits: so there is a choice of lengths. The
queue has an end: a text that does not fit is refused at once, not late.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Protocol, runtime_checkable

from regard.serving.pool import Pool, WorkerProcess, WorkerRefusedError

COMPANY_SECONDS = 0.003  # in which another text comes, or the batch begins without it
COMPANY_AT_MOST = 0.05
CHARACTERS = 8000  # of a batch, each text counting as long as the longest; at least one text
TEXTS = 64
ENOUGH = 16  # texts that are no longer shared out: smaller batches cost more than a choice of lengths saves
TURNS = 3  # that a text is passed over for others of a better length
AGAIN_SECONDS = 0.1  # after which a worker is told again to give up: it may not have begun when it was told
PATIENCE_SECONDS = 5.0  # after which one that does not listen is ended


class FullError(Exception):
    """More texts wait than may."""


@runtime_checkable
class Question(Protocol):
    """What a batch of texts with the same wishes is asked as. `key`: texts of different keys never share a batch."""

    @property
    def key(self) -> Hashable: ...
    def ask(self, texts: Sequence[str]) -> Any: ...


@dataclass(eq=False)
class Item:
    """One text, and where its answer goes. Nobody waits for one whose future was cancelled."""

    text: str
    question: Question
    answer: "asyncio.Future[Any]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    alone: bool = False  # shares no batch: one that it was in was refused, perhaps for the text of somebody else
    passed: int = 0  # turns in which others went instead


class Batcher:
    """`answer(texts, question)` from many tasks at once; `run` is the task that makes the batches."""

    def __init__(self, pool: Pool, most_waiting: int) -> None:
        self.pool, self.most_waiting = pool, most_waiting
        self.waiting: deque[Item] = deque()
        self.running = 0  # texts that workers are at
        self._come = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, texts: Sequence[str], question: Question) -> list[Any]:
        """One answer a text, in order. Cancelled, it frees its places; a batch that nobody waits for is given up.

        Where nobody waits all texts are taken, however many: a request has limits of its own.
        """
        if len(self.waiting) + len(texts) > self.most_waiting:
            self.waiting = deque(item for item in self.waiting if not item.answer.done())
            if self.waiting and len(self.waiting) + len(texts) > self.most_waiting:
                raise FullError
        items = [Item(text, question) for text in texts]
        self.waiting.extend(items)
        self._come.set()
        try:
            return list(await asyncio.gather(*(item.answer for item in items)))
        finally:
            for item in items:
                item.answer.cancel()

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                worker = await self.pool.free.get()
                try:
                    items = await self._next()
                except asyncio.CancelledError:
                    self.pool.free.put_nowait(worker)
                    raise
                if worker.ended:  # while it had nothing to do: nobody needs to be told
                    self.pool.replace(worker)
                    self.waiting.extendleft(reversed(items))
                else:
                    self._begin(self._ask(worker, items))
        finally:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _next(self) -> list[Item]:
        """The items of the next batch; waits until there are any."""
        while True:
            while not self.waiting:
                self._come.clear()
                await self._come.wait()
            await self._company()
            items, self.waiting = choose(self.waiting, self._share())
            if items:
                return items

    def _share(self) -> int:
        """The texts of the next batch: workers that are free get as many, and a share waits while all are busy."""
        fair = ceil(len(self.waiting) / (1 + self.pool.free.qsize()))
        some = ceil((len(self.waiting) + self.running) / (1 + len(self.pool.workers)))
        return min(fair, max(some, ENOUGH), TEXTS)

    async def _company(self) -> None:
        """Waits while more texts come, unless there is a choice already."""
        before, clock = 0, asyncio.get_running_loop().time
        until = clock() + COMPANY_AT_MOST
        while before < len(self.waiting) < 2 * TEXTS and clock() < until:
            before = len(self.waiting)
            await asyncio.sleep(COMPANY_SECONDS)

    async def _ask(self, worker: WorkerProcess, items: Sequence[Item]) -> None:
        self.running += len(items)
        asked = asyncio.ensure_future(self.pool.ask(worker, items[0].question.ask([item.text for item in items])))
        left = {item.answer for item in items}

        def forget(future: "asyncio.Future[Any]") -> None:
            left.discard(future)
            if not left and not asked.done():
                self._begin(give_up(worker, asked))

        for item in items:
            item.answer.add_done_callback(forget)
        try:
            found = await asked
        except WorkerRefusedError as error:
            self._refused(items, error)
        except Exception as error:
            for item in items:
                tell(item, error)
        else:
            for item, one in zip(items, found, strict=True):
                if not item.answer.done():
                    item.answer.set_result(one)
        finally:
            self.running -= len(items)

    def _refused(self, items: Sequence[Item], error: WorkerRefusedError) -> None:
        """One text alone is told why; of several nobody knows whose fault it was, so each is asked by itself."""
        if len(items) == 1:
            tell(items[0], error)
            return
        for item in items:
            item.alone = True
        self.waiting.extendleft(reversed(items))
        self._come.set()


def tell(item: Item, error: Exception) -> None:
    if not item.answer.done():
        item.answer.set_exception(error)


async def give_up(worker: WorkerProcess, asked: "asyncio.Future[Any]") -> None:
    """Until the worker has given up its batch, or has been ended."""
    for _ in range(round(PATIENCE_SECONDS / AGAIN_SECONDS)):
        worker.interrupt()
        await asyncio.wait({asked}, timeout=AGAIN_SECONDS)
        if asked.done():
            return
    worker.kill()


def choose(waiting: Iterable[Item], most: int = TEXTS) -> tuple[list[Item], deque[Item]]:
    """The first that anybody waits for and those of its key nearest to it in length, while they fit; and who is left.

    Only those who would be in this batch or in the next by their turn are looked at, and who was passed over too often
    goes before others, whatever its length: nobody waits for long.
    """
    there = [item for item in waiting if not item.answer.done()]
    near, taken, longest = there[: 2 * most], there[:1], max((len(item.text) for item in there[:1]), default=0)

    def rank(item: Item, wanted: int = longest) -> int:
        return 0 if item.passed >= TURNS else 1 + abs(len(item.text) - wanted)

    for item in sorted(near[1:], key=rank):
        size = max(longest, len(item.text))
        if fits(item, taken, most) and size * (len(taken) + 1) <= CHARACTERS:
            taken.append(item)
            longest = size
    chosen = set(taken)
    for item in near:
        item.passed += item not in chosen
    return taken, deque(item for item in there if item not in chosen)


def fits(item: Item, taken: Sequence[Item], most: int) -> bool:
    """Whether it may share the batch of those that are taken."""
    return len(taken) < most and not (item.alone or taken[0].alone) and item.question.key == taken[0].question.key
