"""Many clients of one HTTP service in one process: each keeps a connection and asks again when it has its answer."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

REFUSED = (429, 503)


@dataclass(frozen=True)
class Reply:
    """One question: its answer's status, and the seconds until it was there, from the moment it was sent."""

    status: int
    seconds: float
    at: float  # seconds since all began


@dataclass(frozen=True)
class Load:
    """So many clients who ask for so long; one that is refused comes back after `pause` seconds.

    They begin one after another within the first such pause: people do not come in step.
    """

    clients: int
    seconds: float
    warmup: float  # of these seconds, which do not count
    pause: float = 0.0

    def rate(self, replies: Sequence[Reply]) -> float:
        """Answers in a second, of those that came after the warm-up."""
        count = sum(reply.status == 200 and self.warmup <= reply.at <= self.seconds for reply in replies)
        return count / (self.seconds - self.warmup)

    def milliseconds(self, replies: Sequence[Reply], *statuses: int) -> list[float]:
        """How long each took that came after the warm-up with one of these statuses."""
        return [1000 * reply.seconds for reply in replies if reply.status in statuses and reply.at >= self.warmup]


class Client(asyncio.Protocol):
    """One connection, which is opened again where the service closed it. Does little: it shares the machine."""

    def __init__(self, port: int) -> None:
        self.port, self.heard = port, b""
        self.transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[tuple[bytes, bytes]] | None = None  # headers and body

    async def ask(self, path: str, value: object | None = None) -> tuple[int, bytes]:
        """Status and body; with a value, it is sent as JSON."""
        loop = asyncio.get_running_loop()
        body = b"" if value is None else json.dumps(value).encode()
        kind = "" if value is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head = f"{'GET' if value is None else 'POST'} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}\r\n"
        if self.transport is None:
            self.transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self.port)
        self.heard, self.answer = b"", loop.create_future()
        self.transport.write(head.encode() + body)
        top, answer = await self.answer
        if b"\nconnection: close" in top:
            self.close()
        return int(top.split(None, 2)[1]), answer

    def data_received(self, data: bytes) -> None:
        self.heard += data
        top, blank, body = self.heard.partition(b"\r\n\r\n")
        if not blank or self.answer is None or self.answer.done():
            return
        top = top.lower()
        if len(body) >= int(top.partition(b"\ncontent-length:")[2].partition(b"\n")[0]):
            self.answer.set_result((top, body))

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error or ConnectionResetError())

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()  # heard of before another one is open
            self.transport = None


async def flood(port: int, load: Load, question: Callable[[], object]) -> tuple[list[Reply], list[Reply]]:
    """What the clients heard, and what somebody heard who asked for /health ten times a second meanwhile."""
    began, replies, watched = time.perf_counter(), list[Reply](), list[Reply]()

    async def one(client: Client, path: str, ask: Callable[[], object | None], into: list[Reply]) -> int:
        sent = time.perf_counter()
        try:
            status, _ = await client.ask(path, ask())
        except OSError:
            client.close()
            status = 0
        now = time.perf_counter()
        into.append(Reply(status, now - sent, now - began))
        return status

    async def busy(place: int) -> None:
        client = Client(port)
        await asyncio.sleep(load.pause * place / load.clients)
        while time.perf_counter() < began + load.seconds:
            if await one(client, "/translate", question, replies) != 200:
                await asyncio.sleep(load.pause)
        client.close()

    async def watch() -> None:
        client = Client(port)
        while time.perf_counter() < began + load.seconds:
            await one(client, "/health", lambda: None, watched)
            await asyncio.sleep(0.1)
        client.close()

    await asyncio.gather(watch(), *(busy(place) for place in range(load.clients)))
    return replies, watched


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(1, ceil(share * len(ordered))) - 1]


def round_robin(lines: Sequence[str], source: str, target: str) -> Callable[[], object]:
    """One question after another, for ever."""

    def endless() -> Iterator[object]:
        while True:
            yield from ({"q": line, "source": source, "target": target} for line in lines)

    found = endless()
    return lambda: next(found)
