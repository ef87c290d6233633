"""The service around its answers: who may ask, health, figures, logs, limits."""

import base64
import json

from shouting import EN_DE, ask, check, run, said, serving

from regard.serving.app import Settings
from regard.serving.batcher import COMPANY_AT_MOST, COMPANY_SECONDS
from regard.serving.limits import HttpLimits, TextLimits


def test_with_keys_every_route_but_health_wants_one():
    async def test():
        async with serving(settings=Settings(keys=("secret", "other"))) as (port, app):
            paths = {path: ("GET" if "GET" in methods else "POST") for path, methods in app.routes.items()}
            for path, method in {**paths, "/static/app.js": "GET", "/download_file/x": "GET"}.items():
                status, head, _ = await ask(port, path, None if method == "GET" else {"q": "a", **EN_DE})
                shown = path in ("/", "/docs", "/static/app.js")
                assert status == (200 if path == "/health" else 401 if shown else 403), path
                assert ("www-authenticate: basic" in head) == shown
            for wrong in ("wrong", "", "secre", "secret ", None, 3, ["secret"]):
                assert (await said(port, "/translate", {"q": "a", **EN_DE, "api_key": wrong}))[0] == 403
            assert (await said(port, "/translate", {"q": "a", **EN_DE, "api_key": "other"}))[0] == 200
            assert (await said(port, "/languages?api_key=secret"))[0] == 200
            basic = base64.b64encode(b"anybody:secret").decode()
            for header, status in (
                ("Bearer secret", 200),
                ("Bearer no", 403),
                (f"Basic {basic}", 200),
                ("Basic %", 403),
                ("Basic /w==", 403),
            ):
                assert (await said(port, "/languages", headers=f"Authorization: {header}\r\n"))[0] == status, header
            assert (await ask(port, "/", headers=f"Authorization: Basic {basic}\r\n"))[0] == 200

    run(test())


def test_pages_of_other_sites_may_ask():
    async def test():
        async with serving() as (port, _):
            status, head, body = await ask(port, "/translate", method="OPTIONS")
            assert (status, body) == (204, b"")
            for line in (
                "access-control-allow-origin: *",
                "access-control-allow-methods: get, post",
                "access-control-allow-headers: authorization, content-type",
            ):
                assert line in head
            assert "access-control-allow-origin: *" in (await ask(port, "/nowhere"))[1]

    run(test())


def test_a_prefix_may_stand_before_every_path():
    async def test():
        async with serving(settings=Settings(prefix="/mt")) as (port, _):
            assert (await said(port, "/mt/health"))[0] == 200
            assert (await said(port, "/mt/translate/", {"q": "a", **EN_DE})) == (200, {"translatedText": "A"})

    run(test())


def test_health_readiness_and_figures():
    async def test():
        async with serving(http=HttpLimits(body_bytes=100)) as (port, app):
            assert await said(port, "/health") == (200, {"status": "ok"})
            assert await said(port, "/ready") == (200, {"status": "ok", "workers": {"en-de": 1, "de-en": 1}})
            await said(port, "/translate", {"q": "abc", **EN_DE})
            await said(port, "/secret-path")
            status, refusal = await said(port, "/translate", {"q": "x" * 200})
            assert (status, refusal) == (413, {"error": "Invalid request: body of more than 100 bytes"})
            text = (await ask(port, "/metrics"))[2].decode()
            assert 'regard_requests_total{route="/translate",status="200"} 1' in text
            assert 'regard_requests_total{route="unknown",status="404"} 1' in text
            assert 'regard_requests_total{route="unread",status="413"} 1' in text
            assert "regard_characters_total 3" in text
            assert "regard_workers 2" in text
            assert "secret" not in text
            app.draining = True
            status, head, body = await ask(port, "/ready")
            assert (status, json.loads(body)) == (503, {"status": "draining", "workers": {"en-de": 1, "de-en": 1}})
            assert "retry-after: 1" in head

    run(test())


def test_the_log_holds_what_people_write_only_where_it_is_to():
    asked = {"q": "private words", **EN_DE}
    case = ("/translate", {**asked, "api_key": "secret"}, 200, {"translatedText": "PRIVATE WORDS"})
    notes = []
    check(case, notes=notes)
    assert [(entry["event"], entry["route"]) for entry in notes] == [("request", "/translate")]
    assert "rivate" not in json.dumps(notes)
    notes = []
    wrong = ("/translate", {"q": "of a stranger", **EN_DE}, 403, {"error": "Invalid API key"})
    check(case, wrong, notes=notes, settings=Settings(keys=("secret",), log_texts=True))
    assert notes[0] == {"event": "asked", "route": "/translate", "fields": asked}
    assert not any(word in json.dumps(notes) for word in ("secret", "stranger"))


def test_the_description_names_every_route_that_programs_use():
    async def test():
        async with serving() as (port, app):
            status, found = await said(port, "/spec")
            assert status == 200
            described = {path.partition("/{")[0]: set(methods) for path, methods in found["paths"].items()}
            pages = {"/", "/docs"}
            real = {path: {method.lower() for method in methods} for path, methods in app.routes.items()}
            assert {path: real[path] for path in real if path not in pages} | {"/download_file": {"get"}} == described

    run(test())


def test_a_mistake_of_ours_is_one_line_and_no_more(monkeypatch):
    notes = []

    async def test():
        async with serving(notes=notes) as (port, app):
            monkeypatch.setattr(app.service, "detector", lambda *_: 1 / 0)
            assert await said(port, "/detect", {"q": "a"}) == (500, {"error": "Internal error"})
            assert {"event": "error", "route": "/detect", "kind": "ZeroDivisionError"} in notes

    run(test())


def test_nothing_is_without_a_limit_by_default():
    """The figures of docs/serving.md."""
    assert HttpLimits() == HttpLimits(5.0, 10.0, 30.0, 30.0, 16 * 1024, 64, 1 << 20, 1024)
    found = TextLimits()
    assert (found.texts, found.characters, found.alternatives, found.glossary) == (64, 5000, 7, 100)
    assert (found.seconds, found.waiting, found.file_seconds) == (30.0, 256, 600.0)
    assert (found.file_bytes, found.file_characters) == (1 << 20, 200_000)
    assert (COMPANY_SECONDS, COMPANY_AT_MOST) == (0.003, 0.05)
