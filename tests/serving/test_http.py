"""Every answer goes to the one who asked, and what is too much is refused."""

import asyncio
import contextlib
from dataclasses import replace

import pytest
from spoken import CLOSE, PATIENT, SMALL, run, serving, status, talk

from regard.serving.http import HttpResponse, HttpServer
from regard.serving.problems import refuse


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
