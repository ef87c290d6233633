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
    """So many clients who ask for so long; one that is refused comes back after `pause` seconds."""

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


class Client:
    """One connection, which is opened again where the service closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, value: object | None = None) -> tuple[int, bytes]:
        """Status and body; with a value, it is sent as JSON."""
        body = b"" if value is None else json.dumps(value).encode()
        kind = "" if value is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head = f"{'GET' if value is None else 'POST'} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}\r\n"
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(head.encode() + body)
        top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(top.partition("content-length:")[2].partition("\r\n")[0])
        answer = await reader.readexactly(length)
        if "connection: close" in top:
            self.close()
        return int(top.split()[1]), answer

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def flood(port: int, load: Load, question: Callable[[], object]) -> tuple[list[Reply], list[Reply]]:
    """What the clients heard, and what somebody heard who asked for /health ten times a second meanwhile."""
    began, replies, watched = time.perf_counter(), list[Reply](), list[Reply]()

    async def one(client: Client, path: str, ask: Callable[[], object | None], into: list[Reply]) -> int:
        sent = time.perf_counter()
        try:
            status, _ = await client.ask(path, ask())
        except (OSError, asyncio.IncompleteReadError):
            client.close()
            status = 0
        now = time.perf_counter()
        into.append(Reply(status, now - sent, now - began))
        return status

    async def busy() -> None:
        client = Client(port)
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

    await asyncio.gather(watch(), *(busy() for _ in range(load.clients)))
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
