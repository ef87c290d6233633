"""What the API gives beside translations: files, suggestions, scores and explanations."""

from dataclasses import replace

import pytest
from shouting import EN_DE, ask, check, run, said, serving, upload

from regard.serving.app import Settings
from regard.serving.limits import TextLimits


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
