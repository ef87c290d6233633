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
Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Refused(Exception):  # noqa: N818
    """A request that is answered before anybody else sees it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Gone(Exception):  # noqa: N818
    """The client is no longer there, or no longer listens."""


class Ear(asyncio.StreamReaderProtocol):
    """Hears a client leave also while nobody reads what it says, and tells `leave`."""

    gone = False

    def __init__(self, reader: asyncio.StreamReader, accept: Accept) -> None:
        super().__init__(reader, accept)
        self.leave: Callable[[], None] = lambda: None

    def eof_received(self) -> bool | None:
        kept = super().eof_received()
        self.gone = True
        self.leave()
        return kept

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.gone = True
        self.leave()


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
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: Ear(asyncio.StreamReader(CHUNK), self._accept), host, port, backlog=1024
        )
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
        task = asyncio.current_task()
        assert task is not None
        connection = Connection(self, reader, writer, task)
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
            pass  # the last where the client left or `drain` waited long enough: asyncio would log it as a mistake
        finally:
            del self._open[task]
            writer.transport.abort()


class Connection:
    """One client, request after request."""

    def __init__(
        self,
        server: HttpServer,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        task: "asyncio.Task[None]",
    ) -> None:
        self.server, self.limits, self.reader, self.writer, self.task = server, server.limits, reader, writer, task
        ear = writer.transport.get_protocol()
        assert isinstance(ear, Ear)
        self.ear, ear.leave, self.answering = ear, self.give_up, False
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
            await asyncio.sleep(0)  # whoever sent many requests at once is not served before all others

    async def read(self, first: bool) -> HttpRequest | None:
        """The next request; none where there is none to come. The first is due at once, others may let us wait."""
        clock, limits = asyncio.get_running_loop().time, self.limits
        due = clock() + (limits.header_seconds if first else limits.idle_seconds)
        event = self.heard()
        if event is h11.NEED_DATA:
            try:
                async with asyncio.timeout_at(due) as self.patience:
                    self.hear(await self.reader.read(CHUNK))
            except TimeoutError:
                if first and not self.server.leaving:
                    raise slow("headers", limits.header_seconds) from None
                return None
            finally:
                self.patience = None
            try:
                event = await self.next_event(due if first else clock() + limits.header_seconds)
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
            body = await self.body(most, asyncio.get_running_loop().time() + self.limits.body_seconds)
        except TimeoutError:
            raise slow("body", self.limits.body_seconds) from None
        path, _, query = event.target.decode("latin-1").partition("?")
        return HttpRequest(event.method.decode("latin-1"), path, query, headers, body, self.client)

    async def body(self, most: int, due: float) -> bytes:
        found, parts = bytearray(), 0
        while True:
            event = await self.next_event(due)
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

    async def next_event(self, due: float) -> object:
        """What the client says next; TimeoutError where it is not all there in time."""
        while (event := self.heard()) is h11.NEED_DATA:
            async with asyncio.timeout_at(due):
                self.hear(await self.reader.read(CHUNK))
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
        self.answering = True
        if self.ear.gone:  # what needs no time is still said
            asyncio.get_running_loop().call_soon(self.give_up)
        try:
            await self.write(await self.server.handler(request), head=request.method == "HEAD")
        finally:
            self.answering = False

    def give_up(self) -> None:
        if self.answering:
            self.task.cancel()

    async def write(self, response: HttpResponse, head: bool = False) -> None:
        headers = [("Content-Type", response.media), ("X-Content-Type-Options", "nosniff"), *response.headers]
        if isinstance(response.body, bytes) and response.status != 204:
            headers.append(("Content-Length", str(len(response.body))))
        if self.refused or self.server.leaving:
            headers.append(("Connection", "close"))
        start, end = h11.Response(status_code=response.status, headers=headers), h11.EndOfMessage()
        if head:
            await self.send(start, end)
        elif isinstance(response.body, bytes):
            await self.send(start, h11.Data(data=response.body), end)
        else:
            await self.send(start)
            async with aclosing(response.body) as parts:
                async for part in parts:
                    await self.send(h11.Data(data=part))
            await self.send(end)

    async def send(self, *events: h11.Event) -> None:
        """A part of an answer; a client that does not take it in time is cut off."""
        self.writer.write(b"".join(self.protocol.send(event) or b"" for event in events))
        if not self.writer.transport.get_write_buffer_size():  # the system has taken it all
            return
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
