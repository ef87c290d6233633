"""What the page asks of the service beside translations: terms everywhere, links of words, a run, the right address."""

import asyncio
import json
import re

from shouting import EN_DE, ask, check, run, said, serving

from regard.serving.app import Settings
from regard.serving.batcher import Batcher
from regard.serving.watching import Watching
from regard.training.events import Saved, to_json

TERMS = {"glossary": {"a": "b"}, "do_not_translate": ["Kim", "Lee"]}


def form(fields, name, data):
    parts = [
        f'--B\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in (*fields, *EN_DE.items())
    ]
    file = f'--B\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return "".join([*parts, file]).encode() + data + b"\r\n--B--\r\n"


def test_terms_reach_the_model_by_every_way_a_sentence_is_written(monkeypatch):
    questions, answer = [], Batcher.answer

    async def noted(self, texts, question):
        questions.append(question)
        return await answer(self, texts, question)

    monkeypatch.setattr(Batcher, "answer", noted)

    async def test():
        async with serving() as (port, _):
            for path in ("/translate", "/stream", "/alternatives"):
                assert (await ask(port, path, {"q": "a", **EN_DE, **TERMS}))[0] == 200
            fields = [("glossary", json.dumps(TERMS["glossary"]))]
            fields += [("do_not_translate", name) for name in TERMS["do_not_translate"]]
            sent = form(fields, "a.txt", b"a\n")
            assert (await ask(port, "/translate_file", sent, kind="multipart/form-data; boundary=B"))[0] == 200
            refused = form([("glossary", '{"a": " "}')], "a.txt", b"a\n")
            assert (await ask(port, "/translate_file", refused, kind="multipart/form-data; boundary=B"))[0] == 400

    run(test())
    assert [(one.glossary, one.keep) for one in questions] == [((("a", "b"),), ("Kim", "Lee"))] * 4


def test_words_are_linked_pair_by_pair():
    check(
        ("/align", {"q": "a b", "s": "A B", **EN_DE}, 200, {"alignments": [[[0, 1], [1, 0]]]}),
        ("/align", {"q": ["a", ""], "s": ["A", ""], **EN_DE}, 200, {"alignments": [[[0, 0]], []]}),
        ("/align", {"q": ["a", "b"], "s": ["A"], **EN_DE}, 400,
         {"error": "Invalid request: q and s must be of one length"}),
        ("/align", {"q": "a", **EN_DE}, 400, {"error": "Invalid request: missing s parameter"}),
    )  # fmt: skip


def test_an_address_leads_to_the_one_that_the_page_is_written_for():
    async def test():
        for prefix in ("", "/mt"):
            async with serving(settings=Settings(prefix=prefix)) as (port, _):
                for path, place in (("/docs/", "/docs"), ("/docs//", "/docs"), ("", "/")):
                    if prefix + path:
                        status, head, _ = await ask(port, prefix + path)
                        assert (status, f"location: {prefix}{place}\r\n" in head + "\r\n") == (308, True), path
                for path in ("/", "/docs", "/static/app.js"):
                    assert (await ask(port, prefix + path))[0] == 200
                assert (await ask(port, f"{prefix}//elsewhere.example/"))[0] == 404

    run(test())


def test_a_stream_takes_as_long_as_it_does(monkeypatch):
    """Two sentences, the second half a second later; then one whose client leaves."""
    answer = Batcher.answer

    async def late(self, texts, question):
        await asyncio.sleep(0.5 if texts == ["Two are."] else 30.0 if texts == ["slow"] else 0)
        return await answer(self, texts, question)

    monkeypatch.setattr(Batcher, "answer", late)

    async def test():
        async with serving() as (port, _):
            assert (await ask(port, "/stream", {"q": "One is. Two are.", **EN_DE}))[0] == 200
            text = (await ask(port, "/metrics"))[2].decode()
            assert 0.5 <= float(re.search(r'seconds_sum\{route="/stream"\} (\S+)', text)[1]) < 5
            body = json.dumps({"q": "One is.\nslow", **EN_DE}).encode()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /stream HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await reader.readuntil(b"piece")
            writer.transport.abort()
            gone = b'requests_total{route="/stream",status="499"} 1'
            while gone not in (await ask(port, "/metrics"))[2]:
                await asyncio.sleep(0.02)

    run(test())


def test_a_run_is_shown_below_the_page_where_one_is_named(tmp_path):
    (tmp_path / "recipe.yaml").write_text("data: /secret/path\n", encoding="utf-8")
    (tmp_path / "training.jsonl").write_text(to_json(Saved(3, "/secret/path")) + "\n", encoding="utf-8")
    (tmp_path / "report.html").write_text("<p>", encoding="utf-8")

    async def test():
        async with serving() as (port, _):
            assert (await said(port, "/frontend/settings"))[1]["training"] is False
            assert (await ask(port, "/training/"))[0] == 404
        given = Settings(prefix="/mt", keys=("k",), training=Watching(tmp_path, within=True).handle)
        async with serving(settings=given) as (port, _):
            key = {"headers": "Authorization: Bearer k\r\n"}
            assert (await said(port, "/mt/frontend/settings", **key))[1]["training"] is True
            assert (await ask(port, "/mt/training/"))[0] == 401
            status, head, _ = await ask(port, "/mt/training", **key)
            assert (status, "location: /mt/training/\r\n" in head) == (308, True)
            assert b"watch.js" in (await ask(port, "/mt/training/", **key))[2]
            assert (await ask(port, "/mt/training/static/watch.js", **key))[0] == 200
            assert (await ask(port, "/mt/training/report", **key))[0] == 200
            assert (await said(port, "/mt/training/events", **key))[1]["lines"] == [{"event": "Saved", "step": 3}]
            shown = (await said(port, "/mt/training/run", **key))[1]
            assert (shown["recipe"], shown["service"]) == (None, True)
            assert (await ask(port, "/mt/training/recipe.yaml", **key))[0] == 404

    run(test())
