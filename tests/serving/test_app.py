"""The API as clients know it: fields, answers, errors and their texts, over a real port and a worker that shouts."""

import asyncio
import json

import pytest
from shouting import EN_DE, ask, check, run, said, serving, upload

from regard.decoding.constrained import width_for
from regard.decoding.options import SearchOptions
from regard.serving.batcher import FullError
from regard.serving.detection import Detector
from regard.serving.limits import TextLimits
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
