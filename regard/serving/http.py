"""HTTP/1.1 with a deadline for every wait and a bound for every buffer: requests in, answers out.

h11 reads and writes the protocol; what is here is when to stop reading. The servers of the field wait for slow clients
for as long as these like: one that sends a byte a second holds a connection for hours.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import h11

from regard.serving.limits import HttpLimits

CHUNK = 64 * 1024
GRACE_SECONDS = 0.1  # in which what was sent before we left is still taken and read
LINGER_SECONDS = 1.0  # that a client is given to read a refusal before it stops sending
MANY_PARTS, SMALL_PART = 1000, 100  # a body of more parts than this has so many bytes in each, in the mean


@dataclass(frozen=True)
class HttpRequest:
    """One request, whole. Names of headers are in lower case; of a name that is there twice the first counts."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    client: str


@dataclass(frozen=True)
class HttpResponse:
    """An answer: bytes, or a stream of them, each part of which is sent when it comes."""

    status: int
    body: bytes | AsyncGenerator[bytes, None] = b""
    media: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]
Refuse = Callable[[int, str], HttpResponse]  # a status and what to say of it → how this service says it


class Refused(Exception):  # noqa: N818
    """A request that is answered before anybody else sees it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Gone(Exception):  # noqa: N818
    """The client is no longer there, or no longer listens."""


@dataclass
class HttpServer:
    """`handler` answers each request; it is cancelled when its client goes away."""

    handler: Handler
    refuse: Refuse
    limits: HttpLimits
    _open: dict[asyncio.Task[None], "Connection"] = field(default_factory=dict)
    _listening: asyncio.Server | None = None
    leaving: bool = False  # every answer closes its connection

    async def start(self, host: str, port: int) -> int:
        """Listens; the port, which is a free one where 0 is asked for."""
        self._listening = await asyncio.start_server(self._accept, host, port, limit=CHUNK, backlog=1024)
        found: int = self._listening.sockets[0].getsockname()[1]
        return found

    async def drain(self, seconds: float) -> bool:
        """Takes no new connection, lets every request that came before end; whether all did in time."""
        assert self._listening is not None
        self.leaving = True
        await asyncio.sleep(GRACE_SECONDS)
        self._listening.close()
        await asyncio.sleep(0.01)  # who was let in at the last moment is among the open ones now
        for connection in self._open.values():
            connection.hang_up()
        if self._open:
            await asyncio.wait(list(self._open), timeout=seconds)
        left = list(self._open)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return not left

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self, reader, writer)
        task = asyncio.current_task()
        assert task is not None
        full = len(self._open) >= self.limits.connections
        if len(self._open) >= 2 * self.limits.connections:  # nor is there room to say so
            writer.transport.abort()
            return
        self._open[task] = connection
        try:
            if full:
                await connection.turn_away(503, "too many connections")
            else:
                await connection.run()
            await connection.close()
        except (Gone, OSError, asyncio.CancelledError):
            pass  # the last where `drain` waited long enough: asyncio would log it as a mistake
        finally:
            del self._open[task]
            writer.transport.abort()


class Connection:
    """One client, request after request."""

    def __init__(self, server: HttpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server, self.limits, self.reader, self.writer = server, server.limits, reader, writer
        self.protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=self.limits.header_bytes)
        self.refused = False
        self.patience: asyncio.Timeout | None = None  # while nothing is being asked
        address = writer.get_extra_info("peername")
        self.client = str(address[0]) if address else ""

    def hang_up(self) -> None:
        """Closes where nothing is being asked."""
        if self.patience is not None and not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())

    async def run(self) -> None:
        first = True
        while True:
            try:
                request = await self.read(first)
            except Refused as refusal:
                await self.turn_away(refusal.status, refusal.reason)
                return
            if request is None:
                return
            await self.reply(request)
            done = self.protocol.our_state is self.protocol.their_state is h11.DONE
            if self.server.leaving or not done:
                return
            self.protocol.start_next_cycle()
            first = False

    async def read(self, first: bool) -> HttpRequest | None:
        """The next request; none where there is none to come. The first is due at once, others may let us wait."""
        clock, limits = asyncio.get_running_loop().time, self.limits
        due = clock() + (limits.header_seconds if first else limits.idle_seconds)
        try:
            async with asyncio.timeout_at(due) as self.patience:
                event = await self.next_event(one=True)
        except TimeoutError:
            if first and not self.server.leaving:
                raise slow("headers", limits.header_seconds) from None
            return None
        finally:
            self.patience = None
        try:
            async with asyncio.timeout_at(due if first else clock() + limits.header_seconds):
                if event is h11.NEED_DATA:
                    event = await self.next_event()
        except TimeoutError:
            raise slow("headers", limits.header_seconds) from None
        if isinstance(event, h11.ConnectionClosed):
            return None
        assert isinstance(event, h11.Request)
        return await self.complete(event)

    async def complete(self, event: h11.Request) -> HttpRequest:
        """The request with its body."""
        headers: dict[str, str] = {}
        for name, value in event.headers:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        size = len(event.target) + sum(len(name) + len(value) for name, value in event.headers)
        if len(event.headers) > self.limits.header_count or size > self.limits.header_bytes:
            raise Refused(431, f"more than {self.limits.header_count} headers, or {self.limits.header_bytes:,} bytes")
        if "transfer-encoding" in headers and "content-length" in headers:
            raise Refused(400, "both Content-Length and Transfer-Encoding")
        most = self.limits.body_bytes
        if int(headers.get("content-length", 0)) > most:  # h11 has seen to it that it is a number
            raise Refused(413, f"body of more than {most:,} bytes")
        if self.protocol.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                body = await self.body(most)
        except TimeoutError:
            raise slow("body", self.limits.body_seconds) from None
        path, _, query = event.target.decode("latin-1").partition("?")
        return HttpRequest(event.method.decode("latin-1"), path, query, headers, body, self.client)

    async def body(self, most: int) -> bytes:
        found, parts = bytearray(), 0
        while True:
            event = await self.next_event()
            if isinstance(event, h11.Data):
                found += event.data
                parts += 1
                if len(found) > most:
                    raise Refused(413, f"body of more than {most:,} bytes")
                if parts > MANY_PARTS and len(found) < SMALL_PART * parts:  # each costs as much as a large one
                    raise Refused(413, "body in too many small parts")
            elif isinstance(event, h11.EndOfMessage):
                return bytes(found)
            elif isinstance(event, h11.ConnectionClosed):
                raise Gone

    async def next_event(self, *, one: bool = False) -> object:
        """What the client said next. `one`: after a single read, though nothing may be complete yet."""
        event = self.heard()
        while event is h11.NEED_DATA:
            self.hear(await self.reader.read(CHUNK))
            event = self.heard()
            if one:
                break
        return event

    def heard(self) -> object:
        try:
            return self.protocol.next_event()
        except h11.RemoteProtocolError as error:
            raise Refused(error.error_status_hint, "not HTTP/1.1, or more of it than is allowed") from None

    def hear(self, data: bytes) -> None:
        try:
            self.protocol.receive_data(data)
        except RuntimeError:  # it has already said that it would say no more
            raise Gone from None

    async def reply(self, request: HttpRequest) -> None:
        """Asks the handler and sends what it says; both are given up if the client goes away before their end."""
        work = asyncio.ensure_future(self.answer(request))
        ear = asyncio.ensure_future(self.listen())
        try:
            await asyncio.wait({work, ear}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Gone
            await work
        finally:
            for task in (work, ear):
                task.cancel()
            await asyncio.gather(work, ear, return_exceptions=True)

    async def answer(self, request: HttpRequest) -> None:
        await self.write(await self.server.handler(request), head=request.method == "HEAD")

    async def listen(self) -> None:
        """Until the client goes away. What it says of its next requests is kept, up to a bound."""
        room = CHUNK
        while room > 0:
            said = await self.reader.read(room)
            self.hear(said)
            room -= len(said)
            if not said:
                return
        await asyncio.Event().wait()  # for ever: we no longer listen

    async def write(self, response: HttpResponse, head: bool = False) -> None:
        whole = response.body if isinstance(response.body, bytes) else None
        headers = [("Content-Type", response.media), ("X-Content-Type-Options", "nosniff"), *response.headers]
        if whole is not None and response.status != 204:
            headers.append(("Content-Length", str(len(whole))))
        if self.refused or self.server.leaving:
            headers.append(("Connection", "close"))
        await self.send(h11.Response(status_code=response.status, headers=headers))
        if whole is not None and not head:
            await self.send(h11.Data(data=whole))
        if not isinstance(response.body, bytes) and not head:
            async with aclosing(response.body) as parts:
                async for part in parts:
                    await self.send(h11.Data(data=part))
        await self.send(h11.EndOfMessage())

    async def send(self, event: h11.Event) -> None:
        """One part of an answer; a client that does not take it in time is cut off."""
        data = self.protocol.send(event)
        if not data:
            return
        self.writer.write(data)
        try:
            async with asyncio.timeout(self.limits.write_seconds):
                await self.writer.drain()
        except TimeoutError:
            raise Gone from None

    async def close(self) -> None:
        """When all that was written is sent."""
        self.writer.close()
        async with asyncio.timeout(self.limits.write_seconds):
            await self.writer.wait_closed()

    async def turn_away(self, status: int, reason: str) -> None:
        """Says why, and waits a moment: a client that is still sending would lose the words of a closed connection."""
        self.refused = True
        if self.protocol.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self.write(self.server.refuse(status, reason))
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(LINGER_SECONDS):
                self.writer.write_eof()
                while await self.reader.read(CHUNK):
                    pass


def slow(what: str, seconds: float) -> Refused:
    return Refused(408, f"{what} took longer than {seconds:g} seconds")
