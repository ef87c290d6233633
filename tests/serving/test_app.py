"""The API as clients know it: fields, answers, errors and their texts, over a real port and a worker that shouts."""

import asyncio
import base64
import json
from dataclasses import replace

import pytest
from shouting import EN_DE, ask, check, run, said, serving

from regard.decoding.constrained import width_for
from regard.decoding.options import SearchOptions
from regard.serving.app import Settings
from regard.serving.batcher import COMPANY_AT_MOST, COMPANY_SECONDS, FullError
from regard.serving.detection import Detector
from regard.serving.http import HttpRequest
from regard.serving.limits import HttpLimits, TextLimits
from regard.serving.service import wider
from regard.serving.wishes import OfPairs


def test_texts_come_back_translated_with_their_white_space():
    check(
        ("/translate", {"q": "a dog", **EN_DE}, 200, {"translatedText": "A DOG"}),
        ("/translate", {"q": ["a", " b\n\nc  d. "], **EN_DE}, 200, {"translatedText": ["A", " B\n\nC  D. "]}),
        ("/translate", {"q": ["a"], **EN_DE}, 200, {"translatedText": ["A"]}),
        ("/translate", {"q": [], **EN_DE}, 200, {"translatedText": []}),
        ("/translate", {"q": "", **EN_DE}, 200, {"translatedText": ""}),
        ("/translate", {"q": "🙂 …", **EN_DE}, 200, {"translatedText": "🙂 …"}),
        ("/translate", {"q": "x", "source": "EN", "target": "en"}, 200, {"translatedText": "x"}),
        ("/translate", {"q": "x", **EN_DE, "api_key": None, "unknown": 1}, 200, {"translatedText": "X"}),
        ("/translate?q=x&source=en&target=de", {}, 200, {"translatedText": "X"}),
    )


def test_a_page_keeps_its_tags_which_move_with_their_words():
    check(
        ("/translate", {"q": "<p>a <b>c</b> d e</p>", **EN_DE, "format": "html"}, 200,
         {"translatedText": "<p>A C <b>D</b> E</p>"}),  # the second of four words stands for the third
        ("/translate", {"q": "<p>a &amp; b</p>", **EN_DE, "format": "html", "alternatives": 1}, 200,
         {"translatedText": "<p>A &amp; B</p>", "alternatives": ["<p>A &amp; B!</p>"]}),
    )  # fmt: skip


def test_tags_go_by_position_where_too_many_texts_wait_to_ask_for_their_words(monkeypatch):
    async def test():
        async with serving() as (port, app):
            batcher = app.service.models["en", "de"][0].batcher
            room = batcher.answer

            async def full_for_pairs(texts, question):
                if isinstance(question, OfPairs):
                    raise FullError
                return await room(texts, question)

            monkeypatch.setattr(batcher, "answer", full_for_pairs)
            asked = {"q": "<p>a <b>c</b> d e</p>", **EN_DE, "format": "html"}
            assert await said(port, "/translate", asked) == (200, {"translatedText": "<p>A <b>C</b> D E</p>"})

    run(test())


def measured(text, words):
    return {"source": text, "target": text.upper(), "dependence": 1 - words, "confidence": 1 / words}


def test_a_sentence_that_could_not_be_checked_is_named_as_such():
    endless = {"source": "endless a", "target": "ENDLESS A"}
    check(
        ("/translate", {"q": ["endless a", "a"], **EN_DE, "check": True}, 200,
         {"translatedText": ["ENDLESS A", "A"], "concerns": [[{**endless, "concerns": None}], []],
          "checks": [[{**endless, "dependence": None, "confidence": None}], [measured("a", 1)]]}),
    )  # fmt: skip


def test_what_a_person_should_look_at_is_said_where_somebody_asks():
    first = {"source": "It is so so it.", "target": "IT IS SO SO IT.", "concerns": ["twice"]}
    second = {"source": "a a", "target": "A A", "concerns": ["twice"]}
    one_is, so_so = measured("One is.", 2), measured("It is so so it.", 5)
    both = [[measured("a", 1)], [measured("a a", 2)]]
    check(
        ("/translate", {"q": "a a", **EN_DE}, 200, {"translatedText": "A A"}),
        ("/translate", {"q": "a a", **EN_DE, "check": False}, 200, {"translatedText": "A A"}),
        ("/translate", {"q": "a b", **EN_DE, "check": True}, 200,
         {"translatedText": "A B", "concerns": [], "checks": [measured("a b", 2)]}),
        ("/translate", {"q": "One is. It is so so it.", **EN_DE, "check": True}, 200,
         {"translatedText": "ONE IS. IT IS SO SO IT.", "concerns": [first], "checks": [one_is, so_so]}),
        ("/translate", {"q": ["a", "a a"], **EN_DE, "check": "true"}, 200,
         {"translatedText": ["A", "A A"], "concerns": [[], [second]], "checks": both}),
    )  # fmt: skip


def test_alternatives_are_others_and_each_only_once():
    check(
        ("/translate", {"q": "a", **EN_DE, "alternatives": 2}, 200,
         {"translatedText": "A", "alternatives": ["A!", "A!!"]}),
        ("/translate", {"q": ["a", "🙂"], **EN_DE, "alternatives": 1}, 200,
         {"translatedText": ["A", "🙂"], "alternatives": [["A!"], []]}),
    )  # fmt: skip


def test_a_language_that_is_not_given_is_detected():
    check(
        ("/translate", {"q": "der hund", "source": "auto", "target": "en"}, 200,
         {"translatedText": "DER HUND", "detectedLanguage": {"confidence": 90, "language": "de"}}),
        ("/translate", {"q": ["der hund", "a dog"], "source": "auto", "target": "en"}, 200,
         {"translatedText": ["DER HUND", "a dog"],
          "detectedLanguage": [{"confidence": 90, "language": "de"}, {"confidence": 90, "language": "en"}]}),
        ("/detect", {"q": "der hund"}, 200,
         [{"confidence": 90, "language": "de"}, {"confidence": 10, "language": "en"}]),
    )  # fmt: skip


MENTION = (
    '<span class="h-card" translate="no"><a href="https://social.example/@anna" class="u-url mention">'
    "@<span>anna</span></a></span>"
)
OLD_MENTION = MENTION.replace(' translate="no"', "")
LINK = (
    '<a href="https://www.example.org/the/news" target="_blank" rel="nofollow noopener" translate="no">'
    '<span class="invisible">https://www.</span><span class="ellipsis">example.org/the/n</span>'
    '<span class="invisible">ews</span></a>'
)


@pytest.mark.parametrize(
    ("post", "language"),
    [
        (f"<p>{MENTION} Das ist sehr gut</p>", "de"),
        (f"<p>{OLD_MENTION} Das ist sehr gut</p>", "de"),
        (f"<p>{MENTION} Das ist sehr gut: {LINK}</p>", "de"),
        (f"<p>{MENTION} This is very good: {LINK}</p>", "en"),
    ],
)
def test_the_tags_of_a_post_do_not_say_which_language_it_is_in(post, language):
    """As Mastodon sends posts, and with the real detector."""

    async def test():
        async with serving() as (port, app):
            app.service.detector = Detector()
            asked = {"q": [post], "source": "auto", "target": "en", "format": "html"}
            _, found = await said(port, "/translate", asked)
            assert [one["language"] for one in found["detectedLanguage"]] == [language]

    run(test())


def test_what_can_be_translated_is_listed():
    check(
        ("/languages", None, 200, [
            {"code": "en", "name": "English", "targets": ["de", "en"]},
            {"code": "de", "name": "German", "targets": ["de", "en"]},
        ]),
    )  # fmt: skip


def test_errors_have_the_texts_that_clients_know():
    check(
        ("/translate", {**EN_DE}, 400, {"error": "Invalid request: missing q parameter"}),
        ("/translate", {"q": "a", "target": "de"}, 400, {"error": "Invalid request: missing source parameter"}),
        ("/translate", {"q": "a", "source": "zz", "target": "de"}, 400, {"error": "zz is not supported"}),
        ("/translate", {"q": "a", "source": "en", "target": "zz"}, 400, {"error": "zz is not supported"}),
        ("/translate", {"q": "a", **EN_DE, "format": "pdf"}, 400, {"error": "pdf format is not supported"}),
        ("/translate", b"{", 400, {"error": "Invalid JSON format"}),
        ("/translate", {"q": "x" * 5001, **EN_DE}, 400,
         {"error": "Invalid request: request (5001) exceeds text limit (5000)"}),
        ("/translate", {"q": ["x"] * 65, **EN_DE}, 400,
         {"error": "Invalid request: request (65) exceeds text limit (64)"}),
        ("/translate", {"q": "a", **EN_DE, "alternatives": 10000}, 422,
         {"error": "Invalid request: alternatives (10000) exceeds limit (7)"}),
        ("/translate", {"q": "a", **EN_DE, "glossary": {"a": " "}}, 400,
         {"error": "Invalid request: glossary holds a term that is blank, or begins or ends so"}),
        ("/translate", {"q": "a", **EN_DE, "do_not_translate": [""]}, 400,
         {"error": "Invalid request: do_not_translate holds a term that is blank, or begins or ends so"}),
        ("/translate", {"q": "a", **EN_DE, "check": "perhaps"}, 400,
         {"error": "Invalid request: check must be true or false"}),
        ("/translate", {"q": "a", "source": "auto", "target": "zz"}, 400, {"error": "zz is not supported"}),
        ("/translate", None, 405, {"error": "Method not allowed"}),
        ("/nowhere", None, 404, {"error": "Not found"}),
        ("/static/../app.py", None, 404, {"error": "Not found"}),
        ("/suggest", {"q": "a", "s": "b", **EN_DE}, 403, {"error": "Suggestions are disabled on this server."}),
        ("/translate_file", {**EN_DE}, 400, {"error": "Invalid request: missing file parameter"}),
    )  # fmt: skip


def test_what_a_worker_refuses_is_told_without_what_is_nobodys_business():
    check(
        ("/translate", {"q": "refuse", **EN_DE}, 422, {"error": "Invalid request: prefix: not that"}),
        (
            "/translate",
            {"q": "broken", **EN_DE},
            422,
            {"error": "Invalid request: this model translates, but cannot be looked into"},
        ),
        ("/translate", {"q": "mistake", **EN_DE}, 500, {"error": "The model failed on this text"}),
        ("/translate", {"q": "die", **EN_DE}, 503, {"error": "The model failed on this batch; try again"}),
        ("/translate", {"q": "a", **EN_DE}, 200, {"translatedText": "A"}),
    )


def test_an_answer_that_takes_too_long_is_given_up_and_says_when_to_come_back():
    async def test():
        async with serving(limits=TextLimits(seconds=0.3, file_seconds=0.3)) as (port, _):
            for path in ("/translate", "/stream", "/alternatives", "/explain"):
                status, head, body = await ask(port, path, {"q": "slow", **EN_DE})
                assert (status, json.loads(body)) == (504, {"error": "Timeout: no answer within 0.3 seconds"}), path
                assert "retry-after: 1" in head
            kind = "multipart/form-data; boundary=B"
            status, head, _ = await ask(port, "/translate_file", upload("a.txt", b"slow"), kind=kind)
            assert status == 504
            assert "retry-after: 1" in head

    run(test())


def test_alternatives_make_a_beam_of_eight_at_most_and_required_words_one_of_64():
    widest = wider(SearchOptions(beam=4), 1 + TextLimits().alternatives).beam
    assert (widest, width_for(0, widest), width_for(3, widest), width_for(4, widest)) == (8, 8, 8, 10)
    assert width_for(31, widest) == width_for(5000, widest) == 64
    seven = [f"A{'!' * k}" for k in range(1, 8)]
    check(
        ("/translate", {"q": "a", **EN_DE, "alternatives": 7}, 200, {"translatedText": "A", "alternatives": seven}),
        *((path, {"q": "a", **EN_DE, "alternatives": 8}, 422,
           {"error": "Invalid request: alternatives (8) exceeds limit (7)"})
          for path in ("/translate", "/alternatives", "/explain")),
    )  # fmt: skip


def test_a_full_queue_says_slow_down_and_when_to_come_back():
    async def test():
        async with serving(limits=TextLimits(seconds=5.0, waiting=2)) as (port, app):
            batcher = app.service.models["en", "de"][0].batcher
            slow = asyncio.ensure_future(ask(port, "/translate", {"q": "slow", **EN_DE}))
            while not batcher.running:
                await asyncio.sleep(0.01)
            held = asyncio.ensure_future(ask(port, "/translate", {"q": ["a", "b"], **EN_DE}))
            while len(batcher.waiting) < 2:
                await asyncio.sleep(0.01)
            status, head, body = await ask(port, "/translate", {"q": "c", **EN_DE})
            assert (status, json.loads(body)) == (429, {"error": "Slowdown: too many texts are waiting"})
            assert "retry-after: 1" in head
            assert (await ask(port, "/health"))[0] == 200
            held.cancel()
            slow.cancel()
            await asyncio.gather(held, slow, return_exceptions=True)

    run(test())


def test_a_client_that_goes_away_frees_its_place_and_its_worker():
    async def test():
        async with serving(limits=TextLimits(seconds=30.0)) as (port, app):
            batcher = app.service.models["en", "de"][0].batcher
            for path in ("/translate", "/stream"):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                body = json.dumps({"q": "slow", **EN_DE}).encode()
                writer.write(f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                while not batcher.running:
                    await asyncio.sleep(0.01)
                writer.transport.abort()
                assert await said(port, "/translate", {"q": "a", **EN_DE}) == (200, {"translatedText": "A"})
            assert batcher.pool.restarts == 0

    run(test())


def test_a_lost_worker_is_told_and_comes_back():
    async def test():
        async with serving() as (port, _):
            status, head, _ = await ask(port, "/translate", {"q": "die", **EN_DE})
            assert status == 503
            assert "retry-after: 1" in head
            assert (await said(port, "/translate", {"q": "a", **EN_DE}))[0] == 200
            assert b"regard_worker_restarts 1" in (await ask(port, "/metrics"))[2]
            assert (await said(port, "/ready"))[0] == 200

    run(test())


def test_nobody_gets_what_is_anothers():
    async def test():
        async with serving(limits=TextLimits(seconds=50.0)) as (port, app):
            batcher = app.service.models["en", "de"][0].batcher
            asked = [f"canary {i} {'x' * (i % 17)}" for i in range(60)]
            found = await asyncio.gather(*(said(port, "/translate", {"q": one, **EN_DE}) for one in asked))
            assert found == [(200, {"translatedText": one.upper()}) for one in asked]
            mixed = [one if i % 10 else "refuse" for i, one in enumerate(asked)]  # a refusal in every batch
            found = await asyncio.gather(*(said(port, "/translate", {"q": one, **EN_DE}) for one in mixed))
            refused = (422, {"error": "Invalid request: prefix: not that"})
            assert found == [refused if one == "refuse" else (200, {"translatedText": one.upper()}) for one in mixed]
            assert not batcher.waiting
            assert not batcher.running

    run(test())


# ---------------------------------------------------------------- who may ask
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


# ---------------------------------------------------------------- files, suggestions, ours
def upload(name, data):
    parts = [f'--B\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in EN_DE.items()]
    file = f'--B\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return "".join([*parts, file]).encode() + data + b"\r\n--B--\r\n"


def test_a_file_is_translated_and_can_be_fetched():
    async def test():
        async with serving() as (port, app):
            for name, data, expected in (
                ("../a bü.txt", "\ufeffone\r\n\r\ntwo".encode(), "\ufeffONE\r\n\r\nTWO".encode()),
                ("s.srt", b"1\n00:00:01,000 --> 00:00:02,000\nhello\n", b"1\n00:00:01,000 --> 00:00:02,000\nHELLO\n"),
            ):
                status, body = await said(
                    port, "/translate_file", upload(name, data), kind="multipart/form-data; boundary=B"
                )
                assert status == 200, body
                place = body["translatedFileUrl"].removeprefix("http://h:1")
                assert place.isascii()
                status, head, found = await ask(port, place)
                assert (status, found) == (200, expected)
                assert "content-disposition: attachment" in head
            assert (await ask(port, "/download_file/unknown.txt"))[0] == 404
            app.documents.kept = {key: replace(one, until=0.0) for key, one in app.documents.kept.items()}
            assert (await ask(port, place))[0] == 404

    run(test())


@pytest.mark.parametrize(
    ("name", "data", "status", "text"),
    [
        ("a.exe", b"x", 400, "file format not supported"),
        ("a.txt", b"\xff\xfe", 400, "the file is not UTF-8"),
        ("a.txt", b"x" * 201, 413, "file of more than 200 bytes"),
        ("a.txt", b"x" * 150, 400, r"request (150) exceeds text limit (100)"),
    ],
)
def test_files_that_cannot_be_translated_are_refused(name, data, status, text):
    async def test():
        async with serving(limits=TextLimits(file_bytes=200, file_characters=100)) as (port, _):
            found = await said(port, "/translate_file", upload(name, data), kind="multipart/form-data; boundary=B")
            assert found[0] == status
            assert text in found[1]["error"]

    run(test())


def test_a_file_that_nobody_could_fetch_any_more_is_refused():
    async def test():
        async with serving() as (port, app):
            app.draining = True
            status, head, body = await ask(
                port, "/translate_file", upload("a.txt", b"one"), kind="multipart/form-data; boundary=B"
            )
            assert status == 503
            assert "retry-after: 1" in head
            assert b"send it again" in body
            assert not app.documents.kept

    run(test())


def test_suggestions_are_kept_where_they_are_wanted():
    kept = []
    check(
        ("/suggest", {"q": "a", "s": "b", **EN_DE}, 200, {"success": True}),
        ("/suggest", {"q": "a", **EN_DE}, 400, {"error": "Invalid request: missing s parameter"}),
        settings=Settings(suggestions=kept.append),
    )
    assert kept == [{"q": "a", "s": "b", **EN_DE}]


def test_translations_are_scored_and_continued():
    check(
        ("/score", {"q": "ab", "s": "c", **EN_DE}, 200,
         {"scores": [{"logProbability": -3.0, "tokens": 2, "perplexity": 1.0}]}),
        ("/score", {"q": ["a", "b"], "s": ["c"], **EN_DE}, 400,
         {"error": "Invalid request: q and s must be of one length"}),
        ("/alternatives", {"q": "a", "prefix": "Z", "alternatives": 1, **EN_DE}, 200,
         {"candidates": [{"text": "ZA", "score": 0, "logProbability": 0, "tokens": []},
                         {"text": "ZA!", "score": -1, "logProbability": -1, "tokens": []}]}),
        ("/alternatives", {"q": "a", "source": "en", "target": "en"}, 400,
         {"error": "Invalid request: source and target are the same language"}),
    )  # fmt: skip


def test_an_explanation_is_asked_for_as_it_was_wished():
    async def test():
        async with serving() as (port, _):
            _, found = await said(port, "/explain", {"q": "a", **EN_DE})
            assert (found["source"]["text"], found["model"]) == ("a", "None 5 None False")
            wanted = {"target_text": "b", "alternatives": 2, "method": "rise", "check": True}
            _, found = await said(port, "/explain", {"q": "a", **EN_DE, **wanted})
            assert found["model"] == "b 2 rise True"

    run(test())
    check(
        ("/explain", {"q": "a", **EN_DE, "method": "guess"}, 400,
         {"error": "Invalid request: method must be one of attention, rollout, gradient, rise"}),
        ("/explain", {"q": "a", **EN_DE, "alternatives": 9}, 422,
         {"error": "Invalid request: alternatives (9) exceeds limit (7)"}),
        ("/explain", {"q": "broken", **EN_DE}, 422,
         {"error": "Invalid request: this model translates, but cannot be looked into"}),
    )  # fmt: skip


def test_a_stream_that_fails_before_its_first_piece_has_a_status():
    check(
        ("/stream", {"q": "refuse", **EN_DE}, 422, {"error": "Invalid request: prefix: not that"}),
        ("/stream", {"q": " \n refuse", **EN_DE}, 422, {"error": "Invalid request: prefix: not that"}),
        ("/stream", {"q": "mistake", **EN_DE}, 500, {"error": "The model failed on this text"}),
        ("/stream", {"q": "die", **EN_DE}, 503, {"error": "The model failed on this batch; try again"}),
        ("/stream", {"q": "x" * 5001, **EN_DE}, 400,
         {"error": "Invalid request: request (5001) exceeds text limit (5000)"}),
    )  # fmt: skip


def test_a_stream_that_finds_a_full_queue_has_a_status():
    async def test():
        async with serving(limits=TextLimits(seconds=5.0, waiting=2)) as (port, app):
            batcher = app.service.models["en", "de"][0].batcher
            held = [asyncio.ensure_future(ask(port, "/translate", {"q": "slow", **EN_DE}))]
            while not batcher.running:
                await asyncio.sleep(0.01)
            held.append(asyncio.ensure_future(ask(port, "/translate", {"q": "b", **EN_DE})))
            while not batcher.waiting:
                await asyncio.sleep(0.01)
            status, head, body = await ask(port, "/stream", {"q": "One is. Two are.", **EN_DE})  # there is room for one
            assert (status, json.loads(body)) == (429, {"error": "Slowdown: too many texts are waiting"})
            assert "retry-after: 1" in head
            for one in held:
                one.cancel()
            await asyncio.gather(*held, return_exceptions=True)

    run(test())


def test_a_stream_that_fails_later_says_so_at_its_end():
    async def test():
        async with serving() as (port, _):
            text = "\n".join(f"One {i} is." for i in range(40))  # more than are asked for at a time
            for last, reason in (("refuse", "Invalid request: prefix: not that"), ("die", "The model failed")):
                _, _, body = await ask(port, "/stream", {"q": f"{text}\n{last}", **EN_DE})
                assert b'"ONE 0 IS."' in body
                assert f'event: error\ndata: {{"error": "{reason}'.encode() in body

    run(test())


def test_a_stream_has_one_time_for_all_its_pieces():
    async def test():
        async with serving(limits=TextLimits(seconds=0.5)) as (port, _):
            text = "\n".join([*(f"One {i} is." for i in range(40)), "slow"])
            _, _, body = await ask(port, "/stream", {"q": text, **EN_DE})
            assert b"Timeout: no answer within 0.5 seconds" in body

    run(test())


def test_a_stream_that_nobody_takes_is_given_up():
    """Its answer was there, and its client went away before it got a byte of it."""

    async def test():
        async with serving() as (_, app):
            batcher = app.service.models["en", "de"][0].batcher
            text = "\n".join([*(f"One {i} is." for i in range(40)), "slow"])
            asked = json.dumps({"q": text, **EN_DE}).encode()
            response = await app.handle(HttpRequest("POST", "/stream", "", {}, asked, ""))
            assert response.status == 200
            del response
            while batcher.running or batcher.waiting:
                await asyncio.sleep(0.01)

    run(test())


def test_a_stream_says_each_sentence_and_then_that_it_is_whole():
    async def test():
        async with serving() as (port, _):
            asked = {"q": "One is. Two are.", **EN_DE, "glossary": {}, "do_not_translate": []}
            status, head, body = await ask(port, "/stream", asked)
            assert status == 200
            assert "content-type: text/event-stream" in head
            found = [line for line in body.decode().splitlines() if line.startswith(("event", "data"))]
            assert found == [
                "event: piece", 'data: {"source": "One is.", "text": "ONE IS."}',
                "event: piece", 'data: {"source": " ", "text": " "}',
                "event: piece", 'data: {"source": "Two are.", "text": "TWO ARE."}', "event: end", "data: {}",
            ]  # fmt: skip

    run(test())


# ---------------------------------------------------------------- the service itself
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
