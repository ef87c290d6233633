"""A connection ends when its time is up: clients that are slow, that go away, that want everything."""

import asyncio
import contextlib
from dataclasses import replace

import pytest
from spoken import PATIENT, QUICK, echo, run, serving, status, talk

from regard.serving.http import HttpResponse


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
