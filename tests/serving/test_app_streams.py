"""Translations that come piece by piece, and what is said of those that fail."""

import asyncio
import json

from shouting import EN_DE, ask, check, run, serving

from regard.serving.http import HttpRequest
from regard.serving.limits import TextLimits


def test_a_stream_that_fails_before_its_first_piece_has_a_status():
    check(
        ("/stream", {"q": "refuse", **EN_DE}, 422, {"error": "Invalid request: prefix: not that"}),
        ("/stream", {"q": " \n refuse", **EN_DE}, 422, {"error": "Invalid request: prefix: not that"}),
        ("/stream", {"q": "mistake", **EN_DE}, 500, {"error": "The model failed on this text"}),
        ("/stream", {"q": "die", **EN_DE}, 503, {"error": "The model failed on this batch; try again"}),
        ("/stream", {"q": "x" * 5001, **EN_DE}, 400,
         {"error": "Invalid request: request (5001) exceeds text limit (5000)"}),
    )  # fmt: skip


def test_a_stream_that_finds_a_full_queue_has_a_status():
    async def test():
        async with serving(limits=TextLimits(seconds=5.0, waiting=2)) as (port, app):
            batcher = app.service.models["en", "de"][0].batcher
            held = [asyncio.ensure_future(ask(port, "/translate", {"q": "slow", **EN_DE}))]
            while not batcher.running:
                await asyncio.sleep(0.01)
            held.append(asyncio.ensure_future(ask(port, "/translate", {"q": "b", **EN_DE})))
            while not batcher.waiting:
                await asyncio.sleep(0.01)
            status, head, body = await ask(port, "/stream", {"q": "One is. Two are.", **EN_DE})  # there is room for one
            assert (status, json.loads(body)) == (429, {"error": "Slowdown: too many texts are waiting"})
            assert "retry-after: 1" in head
            for one in held:
                one.cancel()
            await asyncio.gather(*held, return_exceptions=True)

    run(test())


def test_a_stream_that_fails_later_says_so_at_its_end():
    async def test():
        async with serving() as (port, _):
            text = "\n".join(f"One {i} is." for i in range(40))  # more than are asked for at a time
            for last, reason in (("refuse", "Invalid request: prefix: not that"), ("die", "The model failed")):
                _, _, body = await ask(port, "/stream", {"q": f"{text}\n{last}", **EN_DE})
                assert b'"ONE 0 IS."' in body
                assert f'event: error\ndata: {{"error": "{reason}'.encode() in body

    run(test())


def test_a_stream_has_one_time_for_all_its_pieces():
    async def test():
        async with serving(limits=TextLimits(seconds=0.5)) as (port, _):
            text = "\n".join([*(f"One {i} is." for i in range(40)), "slow"])
            _, _, body = await ask(port, "/stream", {"q": text, **EN_DE})
            assert b"Timeout: no answer within 0.5 seconds" in body

    run(test())


def test_a_stream_that_nobody_takes_is_given_up():
    """Its answer was there, and its client went away before it got a byte of it."""

    async def test():
        async with serving() as (_, app):
            batcher = app.service.models["en", "de"][0].batcher
            text = "\n".join([*(f"One {i} is." for i in range(40)), "slow"])
            asked = json.dumps({"q": text, **EN_DE}).encode()
            response = await app.handle(HttpRequest("POST", "/stream", "", {}, asked, ""))
            assert response.status == 200
            del response
            while batcher.running or batcher.waiting:
                await asyncio.sleep(0.01)

    run(test())


def test_a_stream_says_each_sentence_and_then_that_it_is_whole():
    async def test():
        async with serving() as (port, _):
            asked = {"q": "One is. Two are.", **EN_DE, "glossary": {}, "do_not_translate": []}
            status, head, body = await ask(port, "/stream", asked)
            assert status == 200
            assert "content-type: text/event-stream" in head
            found = [line for line in body.decode().splitlines() if line.startswith(("event", "data"))]
            assert found == [
                "event: piece", 'data: {"source": "One is.", "text": "ONE IS."}',
                "event: piece", 'data: {"source": " ", "text": " "}',
                "event: piece", 'data: {"source": "Two are.", "text": "TWO ARE."}', "event: end", "data: {}",
            ]  # fmt: skip

    run(test())
