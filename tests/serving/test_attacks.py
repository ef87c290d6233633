"""What is done to a running service, by mistake or not: it stays as it was, says nothing of itself, and asks nobody.

The figures of docs/serving.md at their full size are marked slow; what stands beside them is the same, smaller.
"""

import asyncio
import contextlib
import json
import random
import re
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles

import pytest
from held import from_now_on, memory, spoken_to, taken
from served import EN_DE, FORM, connect, outcome, post, statuses, talk

from regard.serving.service import wider

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read as Linux shows it")
MEBIBYTE = 1 << 20
JSON = "application/json"


# ---------------------------------------------------------------- slow clients
async def trickle(port, head, byte, pause):
    """A byte after each pause, for ever; what the service says to that, and after how long."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    writer.write(head)

    async def drip():
        with contextlib.suppress(ConnectionError):
            while True:
                await asyncio.sleep(pause)
                writer.write(byte)
                await writer.drain()

    dripping = asyncio.ensure_future(drip())
    try:
        return await asyncio.wait_for(reader.read(), 120), time.monotonic() - began
    finally:
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        writer.transport.abort()


HEADERS = b"POST /translate HTTP/1.1\r\nX: "
BODY = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n"


async def delays(port, stop):
    """Seconds until each of one client's requests was answered, one after another, until it is told to stop."""
    found = []
    asked = json.dumps({"q": "abc", **EN_DE}).encode()
    head = f"POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(asked)}\r\n\r\n".encode()
    while not stop.is_set():
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + asked)
        assert statuses(await asyncio.wait_for(reader.read(), 60)) == [200]
        writer.close()
        found.append(time.perf_counter() - began)
        await asyncio.sleep(0.01)
    return found


async def besieged(port, slow):
    """What slow clients are told, and how long another one waits for its answers meanwhile."""
    stop = asyncio.Event()
    other = asyncio.ensure_future(delays(port, stop))
    ends = await asyncio.gather(*slow)
    stop.set()
    return ends, await other


def test_a_hundred_slow_clients_are_cut_off_and_others_answered_meanwhile(service):
    """The headers of the service are due within 5 seconds."""
    port = int(service.rpartition(":")[2])
    ends, others = asyncio.run(besieged(port, [trickle(port, HEADERS, b"x", 0.5) for _ in range(100)]))
    assert [statuses(answer) for answer, _ in ends] == [[408]] * 100
    assert all(b"headers took longer than 5 seconds" in answer for answer, _ in ends)
    assert len(others) > 20


@pytest.mark.slow
def test_five_hundred_slow_clients_do_not_slow_down_the_others(service):
    port = int(service.rpartition(":")[2])

    async def quiet():
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(5, stop.set)
        return await delays(port, stop)

    alone = quantiles(asyncio.run(quiet()), n=20)[-1]
    for head, seconds in ((HEADERS, 5), (BODY, 10)):
        ends, others = asyncio.run(besieged(port, [trickle(port, head, b"x", 1.0) for _ in range(500)]))
        assert [statuses(answer) for answer, _ in ends] == [[408]] * 500
        assert max(took for _, took in ends) < seconds + 10
        assert quantiles(others, n=20)[-1] <= 2 * alone + 0.05  # a few milliseconds twice over are no measure


@pytest.mark.slow
def test_a_client_that_never_reads_is_cut_off(service):
    """After 30 seconds: until then its answers fill all buffers on the way to it."""
    request = b"GET /spec HTTP/1.1\r\nHost: x\r\n\r\n"
    with connect(service) as connection:
        connection.settimeout(90)
        with pytest.raises(ConnectionError):
            connection.sendall(request * 1_000_000)


# ---------------------------------------------------------------- large bodies
def pour(address, head, part, most):
    """Sends so many bytes at most, or until nobody takes them any more; what was said to that."""
    with connect(address) as connection:
        answer = []
        ear = threading.Thread(target=lambda: answer.append(listened(connection)))
        ear.start()
        connection.sendall(head)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < most:
                connection.sendall(part)
                sent += len(part)
        ear.join()
    return answer[0]


def listened(connection):
    """What was heard, though the connection may have ended badly."""
    found = b""
    with contextlib.suppress(OSError):
        while said := connection.recv(65536):
            found += said
    return found


CHUNKED = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_body_of_a_gibibyte_is_refused_early_and_takes_no_room(running):
    pid = running.process.pid
    before = memory(pid)
    from_now_on(pid)
    announced = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (1 << 30)
    assert statuses(talk(running.address, announced)) == [413]  # not a byte of it was sent
    large = b"%x\r\n" % MEBIBYTE + b"x" * MEBIBYTE + b"\r\n"
    assert statuses(pour(running.address, announced, b"x" * MEBIBYTE, 1 << 30)) == [413]
    assert statuses(pour(running.address, CHUNKED, large, 1 << 30)) == [413]
    assert statuses(pour(running.address, CHUNKED, b"1\r\nx\r\n" * 10_000, 6_000_000)) == [413]  # a million chunks
    assert memory(pid, "VmHWM") - before <= 16 * MEBIBYTE


def test_json_that_is_made_to_hurt_is_refused_and_takes_no_room(running):
    pid = running.process.pid
    before = memory(pid)
    from_now_on(pid)
    for body in (b"[" * 100_000, b'{"q": ' + b"9" * 1_000_000 + b"}", b'{"q": NaN}', b'{"q": "a", "q": "b"}', b"\xff"):
        head = b"POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert statuses(talk(running.address, head + body)) == [400]
    assert memory(pid, "VmHWM") - before <= 16 * MEBIBYTE


# ---------------------------------------------------------------- many at once
def canary(number):
    """No two are the same, and hardly two of one length."""
    letters = "".join("abcde"[number // 5**place % 5] for place in range(4))
    return " ".join([letters] * (1 + number % 7))


async def asked(port, path, body, *, leave=None):
    """The answer; none for one who leaves after so many seconds."""
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    if leave is not None:
        await asyncio.sleep(leave)
        writer.transport.abort()
        return None
    whole = await asyncio.wait_for(reader.read(), 120)
    writer.close()
    return statuses(whole), json.loads(whole.partition(b"\r\n\r\n")[2])


def test_two_hundred_at_once_get_what_each_would_get_alone(running, engine):
    """Texts of all lengths, while others go away; scores differ by the last digits of sums in another order."""
    texts = [canary(number) for number in range(200)]
    wishes = [{"q": text, **EN_DE, "alternatives": 1} for text in texts]

    async def together():
        leaving = [asked(running.port, "/alternatives", wishes[-1], leave=0.02 * place) for place in range(40)]
        return await asyncio.gather(*(asked(running.port, "/alternatives", wish) for wish in wishes), *leaving)

    found = asyncio.run(together())[:200]
    assert [status for status, _ in found] == [[200]] * 200
    search = wider(engine.search, 2)
    expected = engine.translate(texts, search, [""] * 200)
    expected[::10] = [engine.translate([text], search, [""])[0] for text in texts[::10]]  # truly alone; all take long
    for wanted, (_, said) in zip(expected, found, strict=True):
        assert [one["text"] for one in said["candidates"]] == [one.text for one in wanted.candidates]
        scores = [one.score for one in wanted.candidates]
        assert [one["score"] for one in said["candidates"]] == pytest.approx(scores, abs=1e-4)
    running.until(lambda: running.figure("running_texts") == running.figure("waiting_texts") == 0)


MIXED = [
    ("/translate", json.dumps({"q": "abc de", **EN_DE}).encode(), JSON, 200),
    ("/translate", json.dumps({"q": ["abc", "", "cab 🙂"], "source": "auto", "target": "de"}).encode(), JSON, 200),
    ("/translate", json.dumps({"q": "<p>a <b>c</b></p>", **EN_DE, "format": "html"}).encode(), JSON, 200),
    ("/translate", b"q=abc&source=en&target=de", FORM, 200),
    ("/translate", b"{", JSON, 400),
    ("/translate", json.dumps({"q": "a", "source": "zz", "target": "de"}).encode(), JSON, 400),
    ("/translate", json.dumps({"q": "a" * 5001, **EN_DE}).encode(), JSON, 400),
    ("/translate", json.dumps({"q": "a", **EN_DE, "alternatives": 8}).encode(), JSON, 422),
    ("/translate", b"x", "image/png", 415),
    ("/detect", b'{"q": "the dog"}', JSON, 200),
    ("/alternatives", json.dumps({"q": "abc", **EN_DE}).encode(), JSON, 200),
    ("/score", json.dumps({"q": "abc", "s": "ABC", **EN_DE}).encode(), JSON, 200),
    ("/stream", json.dumps({"q": "abc. de.", **EN_DE}).encode(), JSON, 200),
    ("/nowhere", b"{}", JSON, 404),
    ("/health", b"{}", JSON, 405),
]


def ask_all(address, rounds):
    """All of them, again and again; after each round a connection that breaks off."""
    for _ in range(rounds):
        for path, body, kind, expected in MIXED:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n"
            found = talk(address, head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert statuses(found) == [expected], (path, body)
        with connect(address) as connection:
            connection.sendall(BODY + b"x")


def leaks(running, rounds, warm):
    """Nothing of what was asked stays: memory within 5 %, no more files and threads than before."""
    with ThreadPoolExecutor(4) as clients:
        list(clients.map(lambda _: ask_all(running.address, warm), range(4)))
        before = taken(running)
        room = {pid: memory(pid) for pid, _ in before}
        list(clients.map(lambda _: ask_all(running.address, rounds), range(4)))
    after = taken(running)
    assert {place: count for place, count in after.items() if count > before[place]} == {}, before
    for pid, bytes_before in room.items():
        assert memory(pid) <= 1.05 * bytes_before, (memory(pid), bytes_before)


def test_hundreds_of_mixed_requests_leave_nothing_behind(running):
    leaks(running, rounds=6, warm=4)


@pytest.mark.slow
def test_a_hundred_thousand_mixed_requests_leave_nothing_behind(running):
    leaks(running, rounds=100_000 // 4 // (len(MIXED) + 1) + 1, warm=50)


# ---------------------------------------------------------------- noise
TEMPLATES = [
    b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n"
    b'{"q": ["abc", "de"], "source": "en", "target": "de", "alternatives": 2, "format": "html", "check": true}',
    b"POST /translate?q=abc&source=en&target=de HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n\r\n",
    b"POST /explain HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n"
    b'{"q": "abc", "source": "en", "target": "de", "target_text": "ABC", "method": "rollout", "alternatives": 3}',
    b"POST /translate_file HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=BB\r\n\r\n"
    b'--BB\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nabc\r\n'
    b'--BB\r\nContent-Disposition: form-data; name="source"\r\n\r\nen\r\n'
    b'--BB\r\nContent-Disposition: form-data; name="target"\r\n\r\nde\r\n--BB--\r\n',
    b"POST /alternatives HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
    b"q=abc&prefix=A&source=en&target=de&alternatives=3",
    b"POST /stream HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp5\r\n\r\n"
    b'{"q": "abc. de.", "source": "en", "target": "de", "glossary": {"de": "E"}, "do_not_translate": ["abc"]}',
    b"POST /score HTTP/1.1\r\nHost: x\r\n\r\n" b'{"q": ["abc"], "s": ["ABC"], "source": "en", "target": "de"}',
    b"POST /compare HTTP/1.1\r\nHost: x\r\n\r\n" b'{"q": "abc", "source": "en", "target": "de"}',
    b"POST /prefer HTTP/1.1\r\nHost: x\r\n\r\n" b'{"token": "abc", "better": 1}',
    b"POST /suggest HTTP/1.1\r\nHost: x\r\n\r\n" b'{"q": "abc", "s": "ABC", "source": "en", "target": "de"}',
    b"POST /detect HTTP/1.1\r\nHost: x\r\n\r\n" b'{"q": "the dog"}',
    *(
        b"GET %s HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n" % path
        for path in (b"/", b"/docs", b"/spec", b"/languages", b"/frontend/settings", b"/health", b"/ready", b"/metrics",
                     b"/static/app.js", b"/download_file/abc.txt")
    ),
]  # fmt: skip
ODD = [
    b"\x00", b"\xff", b"..", b"/", b"%00", b"%2e%2e%2f", b"../../etc/passwd", b'"', b"[", b"]" * 40, b"{", b"null",
    b"-1", b"1e999", b"9" * 400, b"\\ud800", b"\xf0\x9f\x99\x82", b"\r\n", b"\r\n\r\n", b";", b"=", b"&q=", b"en",
    b"PUT", b"HEAD", b"OPTIONS", b"DELETE", b"Content-Type: application/json\r\n", b"Expect: 100-continue\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"X-Forwarded-Proto: https\r\n", b"<b>", b" " * 50,
]  # fmt: skip
TOLD = (b"Traceback", b"site-packages", b".py", b"/regard/", b"/tmp/", b"torch", b"weight", b"Exception")


def changed(data, rng):
    """The request with a few things put in, left out, repeated, or taken from another one, or by another method."""
    if rng.random() < 0.1:
        data = rng.choice((b"GET", b"POST", b"PUT", b"PATCH", b"TRACE", b"BREW")) + data[data.index(b" ") :]
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 0, 1, 3, 10)))
        other = rng.choice(TEMPLATES)
        cut = rng.randrange(len(other))
        piece = rng.choice((rng.choice(ODD), bytes([rng.randrange(256)]), data[start:end] * 2, other[cut : cut + 20]))
        data = data[:start] + piece + data[end:]
    return data


def framed(data):
    """With its true length, and closed after its answer, as far as it still has headers."""
    head, gap, body = data.partition(b"\r\n\r\n")
    if not gap:
        return data + b"\r\n\r\n"
    return head + b"\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def noise(running, count, seed):
    """Each is answered, or is no whole request; nobody is told how the service is built, and it makes no mistake."""
    rng = random.Random(seed)
    seen = set()
    for _ in range(count):
        data = framed(changed(rng.choice(TEMPLATES), rng))
        with connect(running.address) as connection:
            connection.settimeout(1.0)
            connection.sendall(data)
            found = b""
            with contextlib.suppress(OSError):  # it waits for the rest of the request, and need not wait with it
                while said := connection.recv(65536):
                    found += said
        seen |= set(statuses(found))
        assert not seen & {500, 501, 502, 505}, (data, found)
        assert not any(word in error for error in re.findall(rb'{"error": .*?}', found) for word in TOLD), (data, found)
    return seen


def unhandled(running):
    return [entry for entry in running.entries() if entry["event"] == "error"]


def test_noise_is_answered_and_told_nothing(running):
    with ThreadPoolExecutor(4) as clients:
        seen = set().union(*clients.map(lambda seed: noise(running, 100, seed), range(4)))
    assert {200, 400, 404, 405} <= seen
    assert unhandled(running) == []
    assert post(running.address, "/translate", {"q": "abc", **EN_DE})["translatedText"]


@pytest.mark.slow
def test_ten_thousand_times_noise_is_answered_and_told_nothing(running):
    with ThreadPoolExecutor(4) as clients:
        seen = set().union(*clients.map(lambda seed: noise(running, 2500, seed), range(100, 104)))
    assert {200, 400, 404, 405, 415, 422} <= seen
    assert unhandled(running) == []


# ---------------------------------------------------------------- nobody else is asked
def test_whatever_is_asked_of_it_the_service_asks_nobody_else(running):
    """By all of its processes, since they began: Python tells of every connection and every name that is looked up."""
    addresses = ["http://127.0.0.1:9/", "https://example.com/x", "//example.com", "file:///etc/passwd"]
    for text in addresses:
        post(running.address, "/translate", {"q": f'<a href="{text}">abc {text}</a>', **EN_DE, "format": "html"})
        outcome(running.address, {"q": text, **EN_DE}, "/explain")
        headers = {"Host": "example.com", "Referer": text, "X-Forwarded-For": text}
        with urllib.request.urlopen(
            urllib.request.Request(running.address + "/languages", headers=headers), timeout=60
        ):
            pass
    lines = running.network.read_text().splitlines()
    assert lines.count("listening") == 1 + len(running.workers)
    assert [line for line in lines if line != "listening"] == []
    assert {port for pid in (running.process.pid, *running.workers) for port in spoken_to(pid)} <= {running.port}
