"""A connection ends when its time or its room is up, and every answer goes to the one who asked."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from regard.serving.http import HttpRequest, HttpResponse, HttpServer
from regard.serving.limits import HttpLimits
from regard.serving.problems import refuse

QUICK = HttpLimits(header_seconds=0.3, body_seconds=0.3, write_seconds=0.3, idle_seconds=0.3, body_bytes=1000)
PATIENT = HttpLimits()
SMALL = HttpLimits(body_bytes=1000)


async def echo(request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, f"{request.method} {request.path} {request.query} ".encode() + request.body, "text/plain")


@contextlib.asynccontextmanager
async def serving(handler=echo, limits=PATIENT):
    server = HttpServer(handler, refuse, limits)
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.drain(1)


async def talk(port: int, data: bytes, *, wait: float = 5) -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(wait):
            return await reader.read()
    finally:
        writer.close()


def status(answer: bytes) -> int:
    return int(answer.split()[1])


def run(test):
    """The coroutine of a test, to its end."""
    asyncio.run(asyncio.wait_for(test, 20))


CLOSE = b"Host: x\r\nConnection: close\r\n"


def test_a_request_arrives_whole_and_its_answer_comes_back():
    async def test():
        async with serving() as (_, port):
            found = await talk(port, b"POST /a/b?c=d HTTP/1.1\r\n" + CLOSE + b"Content-Length: 5\r\n\r\nhello")
            assert status(found) == 200
            assert found.endswith(b"\r\n\r\nPOST /a/b c=d hello")

    run(test())


def test_requests_on_one_connection_are_answered_in_their_order_also_when_sent_at_once():
    async def test():
        async with serving() as (_, port):
            found = await talk(
                port,
                b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HTTP/1.1\r\n"
                + CLOSE
                + b"\r\n",
            )
            assert [found.index(f"GET /{i}".encode()) for i in (1, 2, 3)] == sorted(
                found.index(f"GET /{i}".encode()) for i in (1, 2, 3)
            )
            assert found.count(b"HTTP/1.1 200") == 3

    run(test())


def test_a_body_in_chunks_is_one_body():
    async def test():
        async with serving() as (_, port):
            chunks = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            found = await talk(port, b"POST / HTTP/1.1\r\n" + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
            assert found.endswith(b"POST /  abcde")

    run(test())


def test_a_stream_is_sent_part_by_part():
    async def parts():
        for word in (b"one ", b"two ", b"three"):
            yield word

    async def handler(request):
        return HttpResponse(200, parts(), "text/plain")

    async def test():
        async with serving(handler) as (_, port):
            found = await talk(port, b"GET / HTTP/1.1\r\n" + CLOSE + b"\r\n")
            assert b"ransfer-" in found
            assert found.endswith(b"4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n")

    run(test())


def test_head_is_answered_without_a_body():
    async def test():
        async with serving() as (_, port):
            found = await talk(port, b"HEAD /x HTTP/1.1\r\n" + CLOSE + b"\r\n")
            assert status(found) == 200
            assert b"content-length: 9" in found.lower()
            assert found.endswith(b"\r\n\r\n")

    run(test())


# ---------------------------------------------------------------- too much
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", 413),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"200\r\n"
            + b"x" * 512
            + b"\r\n"
            + b"200\r\n"
            + b"x" * 512
            + b"\r\n",
            413,
        ),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: 1\r\n" % i for i in range(64)) + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1001, 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
    ids=["length", "chunks", "count", "header", "target", "both", "small", "number", "noise", "host", "chunk"],
)
def test_what_is_too_much_or_no_http_is_refused_and_the_connection_closed(data, expected):
    async def test():
        async with serving(limits=SMALL) as (_, port):
            found = await talk(port, data)
            assert status(found) == expected
            assert b'{"error": "Invalid request: ' in found
            assert b"connection: close" in found.lower()

    run(test())


def test_a_refusal_reaches_a_client_that_is_still_sending():
    async def test():
        async with serving(limits=SMALL) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
            for _ in range(20):
                writer.write(b"x" * 10_000)
                await writer.drain()
            assert status(await reader.read()) == 413
            writer.close()

    run(test())


def test_more_connections_than_there_is_room_for_are_told_so():
    async def test():
        async with serving(limits=replace(PATIENT, connections=2)) as (server, port):
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            while len(server._open) < 2:
                await asyncio.sleep(0.01)
            told = await talk(port, b"GET / HTTP/1.1\r\n" + CLOSE + b"\r\n")
            assert status(told) == 503
            assert b"retry-after: 1\r\n" in told.lower()
            for _, writer in held:
                writer.close()
            while server._open:
                await asyncio.sleep(0.01)
            assert status(await talk(port, b"GET / HTTP/1.1\r\n" + CLOSE + b"\r\n")) == 200

    run(test())


# ---------------------------------------------------------------- too slow
async def trickle(port: int, head: bytes, byte: bytes) -> bytes:
    """A byte every twentieth of a second, for ever; what the server says to that."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)

    async def drip():
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(byte)
                await writer.drain()
                await asyncio.sleep(0.05)

    dripping = asyncio.ensure_future(drip())
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        dripping.cancel()
        writer.close()


@pytest.mark.parametrize(
    ("head", "byte"),
    [
        (b"GET / HTTP/1.1\r\n", b"a"),
        (b"", b"G"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n", b"a"),
    ],
    ids=["headers", "method", "body"],
)
def test_a_byte_now_and_then_does_not_hold_a_connection(head, byte):
    async def test():
        async with serving(limits=QUICK) as (_, port):
            assert status(await trickle(port, head, byte)) == 408

    run(test())


def test_a_connection_that_says_nothing_is_closed():
    async def test():
        async with serving(limits=replace(QUICK, header_seconds=1.0)) as (_, port):
            assert status(await talk(port, b"")) == 408
            later = await talk(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # kept open for another, for a while
            assert later.count(b"HTTP/1.1") == 1

    run(test())


def test_a_client_that_does_not_read_is_cut_off():
    ended = []

    async def endless():
        try:
            while True:
                yield b"x" * 100_000
        finally:
            ended.append(True)

    async def handler(request):
        return HttpResponse(200, endless(), "text/plain")

    async def test():
        async with serving(handler, replace(PATIENT, write_seconds=0.3)) as (server, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(5):
                while not server._open:
                    await asyncio.sleep(0.01)
                while server._open:
                    await asyncio.sleep(0.01)
            writer.close()

    run(test())
    assert ended == [True]


def say_no_more(writer):
    writer.write_eof()


def vanish(writer):
    writer.transport.abort()


@pytest.mark.parametrize("leave", [say_no_more, vanish])
def test_work_for_a_client_that_went_away_is_given_up(leave):
    given_up = asyncio.Event()

    async def handler(request):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            given_up.set()
            raise
        raise AssertionError

    async def test():
        async with serving(handler) as (_, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.sleep(0.1)
            assert not given_up.is_set()
            leave(writer)
            async with asyncio.timeout(5):
                await given_up.wait()
            writer.close()

    run(test())


def test_who_says_at_once_that_it_will_say_no_more_hears_what_needs_no_time_and_no_other_work_is_done_for_it():
    given_up = asyncio.Event()

    async def handler(request):
        if request.path == "/slow":
            try:
                await asyncio.sleep(60)
            finally:
                given_up.set()
        return await echo(request)

    async def test():
        async with serving(handler) as (_, port):
            for path in ("quick", "slow"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                writer.write_eof()
                async with asyncio.timeout(5):
                    assert (await reader.read()).endswith(b"GET /quick  " if path == "quick" else b"")
                writer.close()
            assert given_up.is_set()

    run(test())


def test_who_sends_many_requests_at_once_is_not_served_before_all_others():
    asked = []

    async def handler(request):
        asked.append(request.path)
        return await echo(request)

    async def test():
        async with serving(handler) as (server, port):
            pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            while len(server._open) < 2:
                await asyncio.sleep(0.01)
            for (_, writer), count in zip(pairs, (500, 1), strict=True):
                writer.write(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % count * count)
            await pairs[1][0].readuntil(b"GET /1")
            assert asked.count("/500") < 500
            for _, writer in pairs:
                writer.close()

    run(test())


def test_a_stream_for_a_client_that_went_away_is_given_up_though_nothing_is_sent():
    given_up = asyncio.Event()

    async def parts():
        yield b"first"
        try:
            await asyncio.sleep(60)
        finally:
            given_up.set()

    async def handler(request):
        return HttpResponse(200, parts(), "text/plain")

    async def test():
        async with serving(handler) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\n")  # and has begun to ask again
            await reader.readuntil(b"first")
            assert not given_up.is_set()
            writer.transport.abort()
            async with asyncio.timeout(5):
                await given_up.wait()

    run(test())


# ---------------------------------------------------------------- the end
def test_draining_answers_what_was_asked_and_takes_nothing_new():
    async def handler(request):
        await asyncio.sleep(0.3)
        return HttpResponse(200, request.path.encode(), "text/plain")

    async def test():
        server = HttpServer(handler, refuse, PATIENT)
        port = await server.start("127.0.0.1", 0)
        idle, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        asked = [asyncio.ensure_future(talk(port, b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % i)) for i in range(32)]
        while len(server._open) < 33:
            await asyncio.sleep(0.01)
        assert await server.drain(10)
        answers = await asyncio.gather(*asked)
        assert [answer.endswith(b"/%d" % i) for i, answer in enumerate(answers)] == [True] * 32
        assert all(b"connection: close" in answer.lower() for answer in answers)
        assert await idle.read() == b""
        idle_writer.close()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)

    run(test())


def test_what_does_not_end_in_time_is_ended():
    async def handler(request):
        await asyncio.sleep(60)
        raise AssertionError

    async def test():
        server = HttpServer(handler, refuse, PATIENT)
        port = await server.start("127.0.0.1", 0)
        asked = asyncio.ensure_future(talk(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
        await asyncio.sleep(0.1)
        assert not await server.drain(0.1)
        with contextlib.suppress(ConnectionError):
            assert await asked == b""

    run(test())
