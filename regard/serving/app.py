"""Routes: which function answers which path, who may ask, and what is noted of it. Nothing here translates."""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import Any, get_args

from regard.explaining.explanation import Method
from regard.serving.assets import asset
from regard.serving.comparing import Comparisons
from regard.serving.fields import Fields, read_fields
from regard.serving.files import Documents
from regard.serving.http import Handler, HttpRequest, HttpResponse
from regard.serving.keys import admit
from regard.serving.languages import canonical, listed, name
from regard.serving.metrics import Metrics
from regard.serving.openapi import specification
from regard.serving.problems import Problem, json_response, refuse
from regard.serving.service import AUTO, Said, Served, Service, Wanted
from regard.serving.wishes import Explain

FORMATS = ("text", "html")
METHODS: tuple[str, ...] = get_args(Method)
CORS = ("Access-Control-Allow-Origin", "*")  # pages of other sites may read every answer
ALLOWED = (  # what a browser is told that asks before it asks
    ("Access-Control-Allow-Headers", "Authorization, Content-Type"),
    ("Access-Control-Allow-Methods", "GET, POST"),
    ("Access-Control-Max-Age", "86400"),
)
OPEN = ("/health",)  # answered without a key
SHOWN = ("/", "/docs", "/static", "/training")  # by a browser, which asks its user for the key
Route = Callable[[HttpRequest, Fields], Awaitable[HttpResponse]]
Note = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Settings:
    """`keys`: none, or one of them must come with every request. `prefix`: of every path, behind a proxy.

    `log_texts`: whether the log also holds what people wrote.
    `training` answers what a page that follows a run asks for.
    """

    keys: tuple[str, ...] = ()
    prefix: str = ""
    suggestions: Callable[[dict[str, str]], None] | None = None
    comparisons: Comparisons | None = None
    log_texts: bool = False
    training: Handler | None = None


class App:
    """`handle` answers every request; it never raises."""

    def __init__(self, service: Service, documents: Documents, settings: Settings, note: Note) -> None:
        self.service, self.documents, self.settings, self.note = service, documents, settings, note
        self.draining = False
        models = [model for group in service.models.values() for model in group]
        self.metrics = Metrics(
            {
                "waiting_texts": lambda: sum(len(model.batcher.waiting) for model in models),
                "running_texts": lambda: sum(model.batcher.running for model in models),
                "workers": lambda: sum(model.batcher.pool.alive for model in models),
                "worker_restarts": lambda: sum(model.batcher.pool.restarts for model in models),
            }
        )
        self.routes: dict[str, dict[str, Route]] = {
            "/": {"GET": self.page},
            "/translate": {"POST": self.translate},
            "/detect": {"POST": self.detect},
            "/languages": {"GET": self.languages},
            "/translate_file": {"POST": self.translate_file},
            "/suggest": {"POST": self.suggest},
            "/frontend/settings": {"GET": self.frontend},
            "/health": {"GET": self.health},
            "/ready": {"GET": self.ready},
            "/metrics": {"GET": self.measures},
            "/spec": {"GET": self.spec},
            "/docs": {"GET": self.page},
            "/score": {"POST": self.score},
            "/align": {"POST": self.align},
            "/alternatives": {"POST": self.alternatives},
            "/stream": {"POST": self.stream},
            "/explain": {"POST": self.explain},
            "/compare": {"POST": self.compare},
            "/prefer": {"POST": self.prefer},
        }
        self.patterns: list[tuple[re.Pattern[str], str, Route]] = [
            (re.compile(r"/download_file/[A-Za-z0-9_.-]{1,200}"), "/download_file", self.download),
            (re.compile(r"/static/[A-Za-z0-9_.-]{1,80}"), "/static", self.page),
            (re.compile(r"/training(/[A-Za-z0-9_./-]{1,80})?"), "/training", self.training),
        ]

    async def handle(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        place, response = "unknown", None
        try:
            place, methods = self.find(request)
            response = await self.answer(place, methods, request)
        except Problem as problem:
            response = problem.response()
        except asyncio.CancelledError:
            self.noted(place, 499, began)  # the client went away
            raise
        except Exception as error:  # a mistake of ours: the client learns nothing of it, the log its kind
            self.note({"event": "error", "route": place, "kind": type(error).__name__})
            response = Problem(500, "Internal error").response()
        body = response.body
        if isinstance(body, bytes):
            self.noted(place, response.status, began)
        else:
            body = self.told(body, place, response.status, began)
        return HttpResponse(response.status, body, response.media, [*response.headers, CORS])

    async def told(
        self, parts: AsyncGenerator[bytes, None], place: str, status: int, began: float
    ) -> AsyncGenerator[bytes, None]:
        """The parts of an answer as they come; noted when the last is sent, or when the client went away."""
        ended = 499
        try:
            async with aclosing(parts):
                async for part in parts:
                    yield part
            ended = status
        finally:
            self.noted(place, ended, began)

    def refuse(self, status: int, reason: str) -> HttpResponse:
        """What the connection itself refuses, before there is a request, noted too."""
        self.noted("unread", status, time.perf_counter())
        return refuse(status, reason)

    def noted(self, place: str, status: int, began: float) -> None:
        seconds = time.perf_counter() - began
        self.metrics.answered(place, status, seconds)
        self.note({"event": "request", "route": place, "status": status, "ms": round(1000 * seconds, 1)})

    def find(self, request: HttpRequest) -> tuple[str, dict[str, Route]]:
        """What a path can be asked for, and what it is called in figures: no path of a client gets there."""
        path = request.path.removeprefix(self.settings.prefix)
        path = path.rstrip("/") or "/"
        if path in self.routes:
            return path, self.routes[path]
        for pattern, place, route in self.patterns:
            if pattern.fullmatch(path):
                return place, {"GET": route}
        raise Problem(404, "Not found")

    async def answer(self, place: str, methods: dict[str, Route], request: HttpRequest) -> HttpResponse:
        if request.method == "OPTIONS":
            return HttpResponse(204, headers=ALLOWED)
        route = methods.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            raise Problem(405, "Method not allowed", headers=[("Allow", ", ".join((*methods, "OPTIONS")))])
        fields = read_fields(request)
        if self.settings.keys and place not in OPEN:
            admit(self.settings.keys, request, fields, shown=place in SHOWN)
        if self.settings.log_texts and fields.values:
            asked = {name: value for name, value in fields.values.items() if name != "api_key"}
            self.note({"event": "asked", "route": place, "fields": asked})
        return await route(request, fields)

    # ---------------------------------------------------------------- LibreTranslate's
    async def translate(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        asked = fields.texts("q")
        texts = [asked] if isinstance(asked, str) else asked
        source, target = fields.text("source"), fields.text("target")
        kind = fields.text("format", "text")
        if kind not in FORMATS:
            raise Problem(400, f"{kind:.40} format is not supported")
        wanted = replace(self.wanted(fields), html=kind == "html")
        self.metrics.characters += self.service.counted(texts)
        auto = canonical(source) == AUTO
        detected = [self.service.detect(text, target, html=wanted.html)[0] for text in texts] if auto else []
        codes = [code for code, _ in detected] or [source] * len(texts)
        said = await self.service.translate(codes, target, texts, wanted)
        return json_response(rendered(said, detected, isinstance(asked, str), wanted))

    def wanted(self, fields: Fields, alternatives: int = 0) -> Wanted:
        """`alternatives`: how many there are where a request does not say it."""
        limits = self.service.limits
        glossary = fields.mapping("glossary", limits.glossary)
        keep = fields.several("do_not_translate", limits.glossary)
        for field, terms in (("glossary", [*glossary, *glossary.values()]), ("do_not_translate", keep)):
            if any(not term.strip() or term != term.strip() for term in terms):
                raise Problem(400, f"Invalid request: {field} holds a term that is blank, or begins or ends so")
            if sum(map(len, terms)) > limits.characters:
                raise Problem(422, f"Invalid request: {field} exceeds limit ({limits.characters} characters)")
        count = 1 + fields.number("alternatives", alternatives, limits.alternatives)
        return Wanted(count, glossary=tuple(glossary.items()), keep=tuple(keep), check=fields.flag("check"))

    async def detect(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        asked = fields.texts("q")
        text = asked if isinstance(asked, str) else " ".join(asked)
        self.service.counted([text])
        return json_response([confidence(*found) for found in self.service.detect(text)])

    async def languages(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        return json_response(listed(self.service.models))

    async def translate_file(self, request: HttpRequest, fields: Fields) -> HttpResponse:
        upload = fields.files.get("file")
        if upload is None:
            raise Problem(400, "Invalid request: missing file parameter")
        source, target = fields.text("source"), fields.text("target")
        text, write = self.documents.read(upload)
        code = self.service.detect(text, target)[0][0] if canonical(source) == AUTO else source
        self.service.direction(code, target)
        wanted = replace(self.wanted(fields), candidates=1, check=False)
        said = await self.documents.translate(self.service, code, target, text, wanted)
        if self.draining:
            raise Problem(503, "The service is leaving, and nobody could fetch the file; send it again")
        place = self.documents.keep(upload.name, canonical(target), write(said))
        host, secure = request.headers.get("host", ""), request.headers.get("x-forwarded-proto") == "https"
        address = f"{'https' if secure else 'http'}://{host}{self.settings.prefix}"
        return json_response({"translatedFileUrl": f"{address}/download_file/{place}"})

    async def download(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        found = self.documents.take(request.path.rpartition("/")[2])
        quoted = [("Content-Disposition", f'attachment; filename="{found.name}"')]
        return HttpResponse(200, found.data, "application/octet-stream", quoted)

    async def suggest(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        if self.settings.suggestions is None:
            raise Problem(403, "Suggestions are disabled on this server.")
        given = {key: fields.text(key) for key in ("q", "s", "source", "target")}
        self.service.counted([given["q"], given["s"]])
        self.service.direction(given["source"], given["target"])
        self.settings.suggestions(given)
        return json_response({"success": True})

    async def frontend(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        (source, target), *_ = self.service.models
        limits = self.service.limits
        return json_response(
            {
                "charLimit": limits.characters,
                "frontendTimeout": 500,
                "apiKeys": bool(self.settings.keys),
                "keyRequired": bool(self.settings.keys),
                "suggestions": self.settings.suggestions is not None,
                "compare": self.settings.comparisons is not None
                and any(len(models) > 1 for models in self.service.models.values()),
                "training": self.settings.training is not None,
                "filesTranslation": True,
                "supportedFilesFormat": list(self.documents.formats),
                "language": {
                    "source": {"code": source, "name": name(source)},
                    "target": {"code": target, "name": name(target)},
                },
            }
        )

    # ---------------------------------------------------------------- ours
    async def score(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        pairs = self.pairs(fields)
        return json_response({"scores": await self.service.score(self.model(fields), pairs)})

    async def align(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        pairs = self.pairs(fields)
        return json_response({"alignments": await self.service.links(self.model(fields), pairs)})

    def pairs(self, fields: Fields) -> list[tuple[str, str]]:
        """Texts and their translations, `q` and `s`."""
        sources, targets = ([side] if isinstance(side, str) else side for side in map(fields.texts, ("q", "s")))
        if len(sources) != len(targets):
            raise Problem(400, "Invalid request: q and s must be of one length")
        for side in (sources, targets):
            self.service.counted(side)
        return list(zip(sources, targets, strict=True))

    async def alternatives(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        text, prefix = fields.text("q"), fields.text("prefix", "")
        self.service.counted([text, prefix])
        wanted = self.wanted(fields, alternatives=4)
        return json_response({"candidates": await self.service.continued(self.model(fields), text, prefix, wanted)})

    async def explain(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        text, target = fields.text("q"), fields.text("target_text", "") or None
        self.service.counted([text, target or ""])
        count = fields.number("alternatives", 5, self.service.limits.alternatives)
        wanted = Explain(target, count, fields.choice("method", METHODS), fields.flag("check"))
        return json_response(await self.service.one(self.model(fields), text, wanted))

    async def stream(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        text, wanted = fields.text("q"), self.wanted(fields)
        self.metrics.characters += self.service.counted([text])
        pieces = self.service.stream(self.model(fields), text, replace(wanted, candidates=1))
        first = await anext(pieces)  # what goes wrong before it has its own status
        return HttpResponse(200, self.events(first, pieces), "text/event-stream")

    async def events(
        self, first: tuple[str, str], others: AsyncGenerator[tuple[str, str], None]
    ) -> AsyncGenerator[bytes, None]:
        """Server-sent events: a piece of the text each, then one that says that it is whole, or what went wrong."""
        try:
            async with aclosing(others):
                yield event("piece", dict(zip(("source", "text"), first, strict=True)))
                async for source, text in others:
                    yield event("piece", {"source": source, "text": text})
            yield event("end", {})
        except Problem as problem:
            yield event("error", {"error": problem.text})
        except Exception as error:
            self.note({"event": "error", "route": "/stream", "kind": type(error).__name__})
            yield event("error", {"error": "Internal error"})

    async def compare(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        comparisons, text = self.comparisons(), fields.text("q")
        models = self.service.direction(fields.text("source"), fields.text("target"))
        if len(models) < 2:
            raise Problem(400, "Invalid request: there are no two models of this direction")
        self.metrics.characters += self.service.counted([text])
        outputs = await self.service.compare(SystemRandom().sample(models, 2), text)
        token, texts = comparisons.ask(text, outputs)
        return json_response({"outputs": texts, "token": token})

    async def prefer(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        comparisons, token = self.comparisons(), fields.text("token")
        if "better" not in fields.values:
            raise Problem(400, "Invalid request: missing better parameter")
        better = fields.number("better", -1, 1)
        comparisons.judge(token, None if better < 0 else better)
        return json_response({"success": True})

    def comparisons(self) -> Comparisons:
        if self.settings.comparisons is None:
            raise Problem(403, "Comparisons are disabled on this server.")
        return self.settings.comparisons

    def model(self, fields: Fields) -> Served:
        found = self.service.direction(fields.text("source"), fields.text("target"))
        if not found:
            raise Problem(400, "Invalid request: source and target are the same language")
        return found[0]

    # ---------------------------------------------------------------- the service itself
    async def health(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        return json_response({"status": "ok"})

    async def ready(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        groups = {f"{source}-{target}": group for (source, target), group in self.service.models.items()}
        states = {name: sum(model.batcher.pool.alive for model in group) for name, group in groups.items()}
        ready = not self.draining and all(model.batcher.pool.alive for group in groups.values() for model in group)
        said = {"status": "draining" if self.draining else "ok" if ready else "unready", "workers": states}
        return json_response(said, 200 if ready else 503)

    async def measures(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        return HttpResponse(200, self.metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")

    async def spec(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        return json_response(specification(self.service.limits, self.settings.prefix))

    async def page(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        """What a page loads is named relative to it: from an address with a slash too many or too few it would fail."""
        path = request.path.removeprefix(self.settings.prefix)
        proper = path.rstrip("/") or "/"
        return asset(path) if path == proper else self.elsewhere(proper)

    async def training(self, request: HttpRequest, fields: Fields) -> HttpResponse:  # noqa: ARG002
        """The page of a run, below this one."""
        if self.settings.training is None:
            raise Problem(404, "Not found")
        path = request.path.removeprefix(f"{self.settings.prefix}/training")
        return await self.settings.training(replace(request, path=path)) if path else self.elsewhere("/training/")

    def elsewhere(self, path: str) -> HttpResponse:
        return HttpResponse(308, b"", "text/plain", [("Location", f"{self.settings.prefix}{path}")])


def confidence(code: str, probability: float) -> dict[str, Any]:
    return {"confidence": round(100 * probability), "language": code}


def rendered(
    said: Sequence[Said], detected: Sequence[tuple[str, float]], single: bool, wanted: Wanted
) -> dict[str, Any]:
    """LibreTranslate's answer: lists for a list of texts, single values for one."""
    found: dict[str, list[Any]] = {"translatedText": [one.text for one in said]}
    if detected:
        found["detectedLanguage"] = [confidence(*one) for one in detected]
    if wanted.candidates > 1:
        found["alternatives"] = [list(one.alternatives) for one in said]
    if wanted.check:
        found["concerns"] = [one.concerns for one in said]
        found["checks"] = [one.measures for one in said]
    return {key: values[0] if single else values for key, values in found.items()}


def event(kind: str, value: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
