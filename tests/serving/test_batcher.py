"""Texts of many clients share batches, each gets its own answer, and a lost worker costs only those it was at."""

import asyncio
import contextlib
import sys
from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from regard.serving.batcher import CHARACTERS, ENOUGH, TEXTS, TURNS, Batcher, FullError, Item, choose
from regard.serving.pool import Pool, Start, WorkerLostError, WorkerRefusedError

# Answers each text in capitals; some texts have it do something else.
SCRIPT = """
import json, os, signal, sys, time

class Interrupted(Exception): pass
def interrupt(*_): raise Interrupted
def say(answer): sys.stdout.write(json.dumps(answer) + "\\n"); sys.stdout.flush()

signal.signal(signal.SIGUSR1, signal.SIG_IGN)
say({"found": {"beam": 3, "pid": os.getpid()}})
for line in sys.stdin:
    texts = json.loads(line)["texts"]
    try:
        signal.signal(signal.SIGUSR1, interrupt)
        if "die" in texts: os._exit(3)
        if "refuse" in texts:
            say({"error": "DecodingError", "message": "not that"})
            continue
        if "sleep" in texts: time.sleep(60)
        if "deaf" in texts:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            time.sleep(60)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    except Interrupted:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        say({"error": "Interrupted", "message": ""})
        continue
    say({"found": [[text.upper(), len(texts), os.getpid()] for text in texts]})
"""


@dataclass(frozen=True)
class Wish:
    key: str = ""

    def ask(self, texts):
        return {"texts": list(texts)}


@contextlib.asynccontextmanager
async def batching(count=1, waiting=100):
    pool = Pool(Start([sys.executable, "-c", SCRIPT], {}), count, lambda _: None)
    await pool.begin()
    batcher = Batcher(pool, waiting)
    running = asyncio.ensure_future(batcher.run())
    try:
        yield batcher
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await pool.end()


def run(test):
    asyncio.run(asyncio.wait_for(test, 60))


def test_everybody_gets_the_answers_to_their_own_texts_in_order():
    async def test():
        async with batching(count=2, waiting=200) as batcher:
            asked = [[f"text {client} {i}" for i in range(client % 4 + 1)] for client in range(60)]
            found = await asyncio.gather(*(batcher.answer(texts, Wish()) for texts in asked))
            assert [[one[0] for one in answers] for answers in found] == [[t.upper() for t in texts] for texts in asked]
            sizes = [size for answers in found for _, size, _ in answers]
            assert max(sizes) > 4  # clients share batches

    run(test())


def test_texts_with_other_wishes_are_not_in_the_same_batch():
    async def test():
        async with batching() as batcher:
            found = await asyncio.gather(*(batcher.answer(["x"], Wish(str(i % 3))) for i in range(9)))
            assert sorted(answers[0][1] for answers in found) == [3] * 9

    run(test())


def test_a_full_queue_refuses_at_once_and_takes_again_what_has_room():
    async def test():
        async with batching(waiting=3) as batcher:
            slow = asyncio.ensure_future(batcher.answer(["sleep"], Wish()))
            while not batcher.running:
                await asyncio.sleep(0.01)
            held = asyncio.ensure_future(batcher.answer(["a", "b", "c"], Wish()))
            await asyncio.sleep(0)
            with pytest.raises(FullError):
                await batcher.answer(["d"], Wish())
            held.cancel()
            await asyncio.sleep(0)
            next_one = asyncio.ensure_future(batcher.answer(["e"], Wish()))  # the places of who went away are free
            await asyncio.sleep(0)
            slow.cancel()
            assert (await next_one)[0][0] == "E"

    run(test())


def test_where_nobody_waits_all_texts_of_one_request_are_taken():
    async def test():
        async with batching(waiting=3) as batcher:
            found = await batcher.answer(["a", "b", "c", "d", "e"], Wish())
            assert [one[0] for one in found] == ["A", "B", "C", "D", "E"]

    run(test())


def test_a_refusal_is_for_those_who_asked_and_the_worker_goes_on():
    async def test():
        async with batching() as batcher:
            with pytest.raises(WorkerRefusedError, match="not that") as caught:
                await batcher.answer(["refuse"], Wish())
            assert caught.value.kind == "DecodingError"
            assert (await batcher.answer(["a"], Wish()))[0][0] == "A"
            assert batcher.pool.restarts == 0

    run(test())


def test_a_lost_worker_is_replaced_and_its_batch_told():
    async def test():
        async with batching() as batcher:
            before = (await batcher.answer(["a"], Wish()))[0][2]
            with pytest.raises(WorkerLostError):
                await batcher.answer(["die"], Wish())
            assert batcher.pool.alive == 0
            after = (await batcher.answer(["a"], Wish()))[0]
            assert after[0] == "A"
            assert after[2] != before
            assert (batcher.pool.alive, batcher.pool.restarts) == (1, 1)

    run(test())


def test_a_worker_that_ends_while_it_has_nothing_to_do_is_replaced_and_nobody_told():
    async def test():
        async with batching() as batcher:
            pid = (await batcher.answer(["a"], Wish()))[0][2]
            batcher.pool.workers[0].kill()
            while not batcher.pool.workers[0].ended:
                await asyncio.sleep(0.01)
            found = (await batcher.answer(["b"], Wish()))[0]
            assert found[0] == "B"
            assert found[2] != pid
            assert batcher.pool.restarts == 1

    run(test())


def test_a_batch_that_nobody_waits_for_is_given_up_and_the_worker_kept():
    async def test():
        async with batching() as batcher:
            pid = (await batcher.answer(["a"], Wish()))[0][2]
            long = asyncio.ensure_future(batcher.answer(["sleep"], Wish()))
            while not batcher.running:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)  # the worker is asleep
            long.cancel()
            assert (await batcher.answer(["b"], Wish()))[0] == ["B", 1, pid]
            assert batcher.pool.restarts == 0

    run(test())


def test_a_refused_batch_is_asked_again_one_by_one_so_that_only_the_culprit_is_told():
    async def test():
        async with batching() as batcher:
            slow = asyncio.ensure_future(batcher.answer(["sleep"], Wish()))
            while not batcher.running:
                await asyncio.sleep(0.01)
            asked = [asyncio.ensure_future(batcher.answer([text], Wish())) for text in ("a", "refuse", "b")]
            await asyncio.sleep(0)
            slow.cancel()  # the three that waited are one batch now
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert found[0][0][:2] == ["A", 1]
            assert found[2][0][:2] == ["B", 1]
            assert isinstance(found[1], WorkerRefusedError)

    run(test())


def test_a_worker_that_does_not_listen_is_ended(monkeypatch):
    monkeypatch.setattr("regard.serving.batcher.PATIENCE_SECONDS", 0.3)

    async def test():
        async with batching() as batcher:
            deaf = asyncio.ensure_future(batcher.answer(["deaf"], Wish()))
            while not batcher.running:
                await asyncio.sleep(0.01)
            deaf.cancel()
            assert (await batcher.answer(["b"], Wish()))[0][:2] == ["B", 1]
            assert batcher.pool.restarts == 1

    run(test())


def test_free_workers_share_what_waits():
    async def test():
        async with batching(count=2) as batcher:
            found = await batcher.answer([f"text {i}" for i in range(9)], Wish())
            assert max(size for _, size, _ in found) == 5
            assert len({pid for *_, pid in found}) == 2

    run(test())


def test_a_model_that_cannot_be_opened_says_so():
    async def test():
        script = 'import json; print(json.dumps({"error": "ModelFormatError", "message": "no such model"}))'
        pool = Pool(Start([sys.executable, "-c", script], {}), 2, lambda _: None)
        with pytest.raises(WorkerRefusedError, match="no such model"):
            await pool.begin()

    run(test())


# ---------------------------------------------------------------- what goes into a batch
def test_a_batch_takes_what_fits_and_leaves_the_rest_in_order():
    async def test():
        long, short = "x" * (CHARACTERS // 3), "y"
        items = [
            Item(text, Wish(key)) for text, key in ((long, "a"), (short, "b"), (long, "a"), (long, "a"), (long, "a"))
        ]
        items[1].answer.cancel()  # nobody waits for it
        taken, left = choose(items)
        assert taken == [items[0], items[2], items[3]]
        assert list(left) == [items[4]]

    run(test())


def test_a_text_that_is_longer_than_any_batch_goes_alone():
    async def test():
        items = [Item("x" * (2 * CHARACTERS), Wish()), Item("y", Wish())]
        taken, left = choose(items)
        assert taken == items[:1]
        assert list(left) == items[1:]
        many = [Item("y", Wish()) for _ in range(TEXTS + 5)]
        assert len(choose(many)[0]) == TEXTS

    run(test())


def test_those_of_one_length_go_together_and_the_first_is_always_among_them():
    async def test():
        items = [Item("x" * length, Wish()) for length in (30, 90, 31, 10, 92, 29, 33, 11)]
        taken, left = choose(items, 3)
        assert taken == [items[0], items[2], items[5]]
        assert list(left) == [items[1], items[3], items[4], items[6], items[7]]
        assert choose(left, 2)[0] == [items[1], items[4]]

    run(test())


def test_whatever_the_lengths_nobody_waits_for_many_turns_more_than_by_the_order_of_arrival():
    async def test():
        most, random = 4, Random(1)
        waiting, turns = [], Counter()
        for _ in range(100):
            waiting += [
                Item("x" * int(random.paretovariate(0.5) % 900), Wish()) for _ in range(5 * most - len(waiting))
            ]
            turns.update(waiting)
            waiting = list(choose(waiting, most)[1])
        assert max(turns.values()) <= 5 + TURNS + 2

    run(test())


def test_where_many_wait_half_of_them_stay_so_that_there_is_a_choice_of_lengths():
    async def test():
        async with batching(waiting=1000) as batcher:
            slow = asyncio.ensure_future(batcher.answer(["sleep"], Wish()))
            while not batcher.running:
                await asyncio.sleep(0.01)
            asked = asyncio.ensure_future(batcher.answer(["x" * (1 + i % 2) for i in range(4 * ENOUGH - 1)], Wish()))
            await asyncio.sleep(0)
            slow.cancel()
            found = await asked
            assert max(size for _, size, _ in found) == 2 * ENOUGH
            assert {text for text, size, _ in found if size == 2 * ENOUGH} == {"X"}

    run(test())
