"""The clients of the serving benchmark: they hear what a service says, and count it as by hand."""

import asyncio
import json

from benchmarks.clients import Client, Load, Reply, flood, percentile, round_robin
from regard.serving.http import HttpResponse, HttpServer
from regard.serving.limits import HttpLimits


def test_percentiles_by_hand():
    values = [4.0, 1.0, 3.0, 2.0]
    assert [percentile(values, share) for share in (0.0, 0.25, 0.5, 0.51, 0.99, 1.0)] == [1, 1, 2, 3, 4, 4]


def test_only_answers_after_the_warm_up_count():
    load = Load(clients=1, seconds=3.0, warmup=1.0)
    replies = [
        Reply(200, 0.1, 0.5),
        Reply(200, 0.2, 1.5),
        Reply(429, 0.3, 2.0),
        Reply(200, 0.4, 3.0),
        Reply(200, 9, 12),
    ]
    assert load.rate(replies) == 1.0
    assert load.milliseconds(replies[:4], 200) == [200.0, 400.0]
    assert load.milliseconds(replies, 429, 503) == [300.0]


def test_clients_ask_in_turn_keep_their_connection_and_pause_when_refused():
    heard = []

    async def handler(request):
        if request.path == "/health":
            return HttpResponse(200, b"ok")
        heard.append(json.loads(request.body)["q"])
        return HttpResponse(200 if len(heard) % 2 else 429, b"{}")

    async def test():
        server = HttpServer(handler, lambda status, reason: HttpResponse(status, reason.encode()), HttpLimits())
        port = await server.start("127.0.0.1", 0)
        question = round_robin(["one", "two", "three"], "en", "de")
        replies, watched = await flood(port, Load(2, 0.5, 0.0, 0.1), question)
        client = Client(port)
        assert await client.ask("/health") == (200, b"ok")
        client.close()
        await server.drain(1)
        return replies, watched

    replies, watched = asyncio.run(test())
    assert sorted(heard) == sorted(("one", "two", "three")[place % 3] for place in range(len(heard)))
    assert len(replies) == len(heard)
    assert {reply.status for reply in replies} == {200, 429}
    assert {reply.status for reply in watched} == {200}
