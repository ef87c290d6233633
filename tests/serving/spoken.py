"""A server of nothing but HTTP, and somebody who talks to it."""

import asyncio
import contextlib

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
