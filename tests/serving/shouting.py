"""A service whose models shout: everything of the real one but the mathematics, over a real port."""

import asyncio
import contextlib
import json
import sys

from regard.decoding.options import SearchOptions
from regard.serving.app import App, Settings
from regard.serving.batcher import Batcher
from regard.serving.files import Documents
from regard.serving.http import HttpServer
from regard.serving.limits import HttpLimits, TextLimits
from regard.serving.pool import Pool, Start
from regard.serving.service import Served, Service

# A translation is the text in capitals and the model's mark, the k-th candidate with k exclamation marks. Its words
# stand for the source's from right to left, what is said twice is a concern, and what is measured is the number of its
# words; what is endless cannot be checked. The model of an explanation is called by what was wished of it.
SCRIPT = """
import json, os, signal, sys, time
def say(answer): sys.stdout.write(json.dumps(answer) + "\\n"); sys.stdout.flush()
class Interrupted(Exception): pass
def interrupt(*_): raise Interrupted
def explanation(text, wanted):
    side = {"text": text, "words": [], "tokens": []}
    lists = {key: [] for key in ("steps", "attention", "saliency", "concerns")}
    numbers = {key: None for key in ("log_probability", "score", "dependence", "confidence")}
    return {"format": 1, "model": wanted, "source": side, "start": None, "target": None, **lists, **numbers}
def checked(text):
    words = text.split()
    if "endless" in words: return {"concerns": None, "dependence": None, "confidence": None}
    concerns = ["twice"] if len(set(words)) < len(words) else []
    return {"concerns": concerns, "dependence": 1 - len(words), "confidence": 1 / len(words)}
def answer(asked):
    texts, do = asked["texts"], asked["do"]
    if "die" in texts: os._exit(3)
    if "slow" in texts: time.sleep(60)
    if "refuse" in texts: return {"error": "DecodingError", "message": "prefix: not that"}
    if "broken" in texts: return {"error": "ModelFormatError", "message": "/secret/path: damaged"}
    if "mistake" in texts: return {"error": "KeyError", "message": ""}
    if do == "explain":
        wanted = [asked[key] for key in ("target", "alternatives", "method", "check")]
        return {"found": [explanation(text, " ".join(map(str, wanted))) for text in texts]}
    if do in ("score", "link", "align", "check"):
        pairs = [json.loads(text) for text in texts]
    if do == "score":
        return {"found": [{"logProbability": -1.0 * len(s + t), "tokens": 2, "perplexity": 1.0} for s, t in pairs]}
    if do in ("link", "align"):
        sizes = [len(s.split()) for s, t in pairs]
        return {"found": [[[i, n - 1 - i] for i in range(n)] for n in sizes]}
    if do == "check":
        return {"found": [checked(s) for s, t in pairs]}
    count, begin, mark = asked["search"]["n_best"], asked.get("prefix") or "", sys.argv[1]
    def shout(text, k):
        said = begin + text.upper() + mark + "!" * k
        return {"text": said, "score": -k, "logProbability": -k, "tokens": []}
    return {"found": [[shout(text, k) for k in range(count)] for text in texts]}
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
say({"found": {}})
for line in sys.stdin:
    try:
        signal.signal(signal.SIGUSR1, interrupt)
        said = answer(json.loads(line))
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    except Interrupted:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        said = {"error": "Interrupted", "message": ""}
    say(said)
"""

EN_DE = {"source": "en", "target": "de"}
BOTH = (("toy", "en", "de", ""), ("toy", "de", "en", ""))  # name, source, target, mark


def detect(text, codes):
    first = "de" if "ß" in text or "der" in text.split() else "en"
    return sorted(
        ((code, 0.9 if code == first else 0.1 / max(len(codes) - 1, 1)) for code in codes), key=lambda x: -x[1]
    )


@contextlib.asynccontextmanager
async def application(settings=None, limits=None, models=BOTH, notes=None):
    """The app, without a port."""
    limits = limits or TextLimits(seconds=5.0)
    served, tasks, pools = [], [], []
    for name, source, target, mark in models:
        pool = Pool(Start([sys.executable, "-c", SCRIPT, mark], {}), 1, lambda _: None)
        await pool.begin()
        batcher = Batcher(pool, limits.waiting)
        tasks.append(asyncio.ensure_future(batcher.run()))
        pools.append(pool)
        served.append(Served(name, source, target, batcher, SearchOptions()))
    noted = [] if notes is None else notes
    try:
        yield App(Service(served, limits, detect), Documents(limits), settings or Settings(), noted.append)
    finally:
        for pool in pools:
            pool.kill()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(pool.end() for pool in pools))


@contextlib.asynccontextmanager
async def serving(http=None, **options):
    """Its port, and the app."""
    async with application(**options) as app:
        server = HttpServer(app.handle, app.refuse, http or HttpLimits())
        port = await server.start("127.0.0.1", 0)
        try:
            yield port, app
        finally:
            await server.drain(0)


async def ask(port, path, body=None, *, method=None, kind="application/json", headers=""):
    """Status, headers and body of one request; a dict is sent as JSON."""
    data = json.dumps(body).encode() if isinstance(body, dict | list) else body or b""
    method = method or ("GET" if body is None else "POST")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} {path} HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\nContent-Length: {len(data)}\r\n{headers}"
    head += f"Content-Type: {kind}\r\n" if data else ""
    try:
        writer.write(head.encode() + b"\r\n" + data)
        whole = await reader.read()
    finally:
        writer.close()
    top, _, rest = whole.partition(b"\r\n\r\n")
    return int(top.split()[1]), top.decode().lower(), rest


async def said(port, path, body=None, **options):
    status, _, rest = await ask(port, path, body, **options)
    return status, json.loads(rest)


def run(test):
    asyncio.run(asyncio.wait_for(test, 60))


def check(*cases, **options):
    """(path, body, status, answer) each, one after another on one service."""

    async def test():
        async with serving(**options) as (port, _):
            for path, body, status, answer in cases:
                assert await said(port, path, body) == (status, answer), (path, body)

    run(test())


def upload(name, data):
    parts = [f'--B\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in EN_DE.items()]
    file = f'--B\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return "".join([*parts, file]).encode() + data + b"\r\n--B--\r\n"
