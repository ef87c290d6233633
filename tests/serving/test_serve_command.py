"""`regard serve` as people run it: a real model and real clients."""

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path

import pytest
from served import EN_DE, FORM, outcome, post, statuses, talk

from regard.data.pairs import Pair
from regard.documents import ByAttention, translate_html
from regard.errors import RecipeError, ServingError
from regard.evaluation.judgements import read_judgements
from regard.explaining.explanation import Explanation
from regard.serving.command import checked, read_keys
from regard.serving.http import HttpResponse, HttpServer
from regard.serving.limits import HttpLimits
from regard.serving.notebook import opened
from regard.serving.running import Direction, direction, drained, names


def test_the_client_from_pypi_is_at_home(service, engine):
    libretranslatepy = pytest.importorskip("libretranslatepy")
    client = libretranslatepy.LibreTranslateAPI(service)
    (expected,) = engine.write(["abc de"])
    assert client.translate("abc de", "en", "de") == expected
    assert {one["code"] for one in client.languages()} == {"en"}
    assert {one["language"] for one in client.detect("the quick brown fox")} == {"en", "de"}


def test_mastodon_finds_the_language_of_what_it_sends(service, engine):
    """As its `TranslationService::LibreTranslate` asks: JSON, always a list and HTML, auto where a post names none."""
    assert asked_by_mastodon(service, "/languages") == [{"code": "en", "name": "English", "targets": ["de", "en"]}]
    texts = ["This is what they were thinking about.", "The dog and the house are old."]
    expected = engine.write(texts)
    paragraphs = [f"<p>{text}</p>" for text in texts]
    asked = {"q": paragraphs, "source": "auto", "target": "de", "format": "html", "api_key": None}
    found = asked_by_mastodon(service, "/translate", asked)
    assert found["translatedText"] == [f"<p>{text}</p>" for text in expected]
    assert [one["language"] for one in found["detectedLanguage"]] == ["en", "en"]
    found = asked_by_mastodon(service, "/translate", {**asked, "source": "en", "api_key": ""})
    assert found == {"translatedText": [f"<p>{text}</p>" for text in expected]}


def asked_by_mastodon(address, path, body=None):
    """A GET brings the content type of a body that it does not have."""
    headers = {"Content-Type": "application/json", "User-Agent": "Mastodon/4.5.0 (http.rb/5.3.1; +https://m.example/)"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers), timeout=60) as answer:
        return json.load(answer)


def test_weblate_sends_lists_as_json_and_its_older_versions_single_texts_as_a_form(service, engine):
    expected = engine.write(["abc", "de"])
    with urllib.request.urlopen(service + "/languages", timeout=60) as answer:
        assert [one["code"] for one in json.load(answer)] == ["en"]
    several = post(service, "/translate", {"api_key": "", "q": ["abc", "de"], **EN_DE})
    assert several == {"translatedText": expected}
    single = post(service, "/translate", b"api_key=&q=abc&source=en&target=de", FORM)
    assert single == {"translatedText": expected[0]}
    repeated = post(service, "/translate", b"q=abc&q=de&source=en&target=de&format=text", FORM)
    assert repeated == {"translatedText": expected}


def test_tags_move_as_they_do_on_the_command_line(service, engine, model):
    page = "<p>abc <b>de</b> ba <i>cab</i></p>"
    expected = translate_html(engine, page, align=ByAttention(model), language="en")
    found = post(service, "/translate", {"q": page, **EN_DE, "format": "html"})
    assert found == {"translatedText": expected}
    assert found["translatedText"].count("<b>") == 1


CODES = ("%s", "%1$s", "{name}", "${x}", "https://example.org/a?b=c&d=1", "anna@example.org", "12 km")


@pytest.mark.parametrize("code", CODES)
def test_placeholders_are_kept_in_texts_alternatives_and_pages(service, code):
    asked = {"q": f"abc {code} de", **EN_DE}
    assert post(service, "/translate", asked)["translatedText"].count(code) == 1
    found = post(service, "/translate", {**asked, "alternatives": 3})
    assert {text.count(code) for text in (found["translatedText"], *found["alternatives"])} == {1}
    page = post(service, "/translate", {"q": f"<p>abc {escape(code)} <b>de</b></p>", **EN_DE, "format": "html"})
    assert re.sub("</?[bp]>", "", page["translatedText"]).count(escape(code)) == 1


def test_an_explanation_is_of_the_text_that_keeps_its_placeholders(service, engine):
    asked = {"q": "abc %s de", **EN_DE}
    assert "%s" not in engine.write([asked["q"]])[0]
    found = Explanation.from_json(json.dumps(post(service, "/explain", asked)))
    assert found.target.text == post(service, "/translate", asked)["translatedText"]
    assert found.target.text.count("%s") == 1


def test_terms_are_kept(service):
    asked = {"q": "abc de", **EN_DE, "glossary": {"de": "EEE"}}
    assert "EEE" in post(service, "/translate", asked)["translatedText"]
    asked = {"q": "abc de", **EN_DE, "do_not_translate": ["abc"]}
    assert "abc" in post(service, "/translate", asked)["translatedText"]


def test_scores_continuations_and_explanations_are_those_of_the_engine(service, engine):
    found = post(service, "/alternatives", {"q": "abc de", "prefix": "A", **EN_DE})
    assert all(one["text"].startswith("A") for one in found["candidates"])
    (said,) = engine.translate(["abc de"], None, ["A"])
    assert found["candidates"][0]["text"] == said.text
    scored = post(service, "/score", {"q": "abc", "s": "ABC", **EN_DE})["scores"][0]
    (expected,) = engine.score([Pair("abc", "ABC")])
    assert scored["logProbability"] == pytest.approx(expected.log_probability, abs=1e-4)
    explained = Explanation.from_json(json.dumps(post(service, "/explain", {"q": "abc de", **EN_DE})))
    assert explained.target.text == engine.write(["abc de"])[0]
    given = Explanation.from_json(json.dumps(post(service, "/explain", {"q": "abc", "target_text": "CAB", **EN_DE})))
    assert given.target.text == "CAB"
    checked_too = post(service, "/translate", {"q": "abc", **EN_DE, "check": True})
    assert isinstance(checked_too["concerns"], list)
    told = {"q": "abc", "target_text": checked_too["translatedText"], "check": True, **EN_DE}
    same = Explanation.from_json(json.dumps(post(service, "/explain", told)))
    (check,) = checked_too["checks"]
    assert (check["source"], check["target"]) == ("abc", checked_too["translatedText"])
    assert check["dependence"] == pytest.approx(same.dependence)
    assert check["confidence"] == pytest.approx(same.confidence)


def test_models_are_compared_and_suggestions_kept(service, engine, place):
    found = post(service, "/compare", {"q": "abc de", **EN_DE})
    assert found["outputs"] == engine.write(["abc de"]) * 2  # the second model is a copy
    assert post(service, "/prefer", {"token": found["token"], "better": None}) == {"success": True}
    (judged,) = read_judgements(place / "judged")
    assert {*judged.left.systems, *judged.right.systems} == {"tiny", "twin"}
    assert post(service, "/suggest", {"q": "a", "s": "ü", **EN_DE}) == {"success": True}
    assert json.loads((place / "suggested").read_text()) == {"q": "a", "s": "ü", **EN_DE}


def test_whoever_asks_at_the_same_time_gets_what_they_would_get_alone(service, engine):
    asked = [f"{a}{b} {c}" for a in "abcde" for b in "abc" for c in ("ab", "cde", "eeee")]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: post(service, "/translate", {"q": text, **EN_DE})["translatedText"], asked))
    assert found == engine.write(asked)


def test_texts_that_are_hardly_texts_do_no_harm(service):
    for text in ("\x00", "\ufeff", "\u2028", "a" * 5000, "ạ̈" * 50, "🙂", "<b>" * 500, "\ufffd\uffff", "%s" * 100):
        kind = "html" if "<" in text else "text"
        found = post(service, "/translate", {"q": text, **EN_DE, "format": kind})
        assert isinstance(found["translatedText"], str)
    assert outcome(service, {"q": "a" * 5001, **EN_DE})[0] == 400


HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", [400]),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", [413]),
        (HEAD + b"X: " + b"x" * 20_000 + b"\r\n\r\n", [431]),
        (HEAD + b"Content-Length: 1\r\n\r\n{", [400]),
        (HEAD + b"Content-Type: image/png\r\nContent-Length: 1\r\n\r\n{", [415]),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n{\r\n" * 3000, [413]),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
         b"PUT /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [200, 404, 405]),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", [400]),
    ],
    ids=["both", "lengths", "length", "header", "json", "media", "small chunks", "pipeline", "tls"],
)  # fmt: skip
def test_odd_requests_get_their_status_in_words(service, data, expected):
    found = talk(service, data)
    assert statuses(found) == expected
    assert b'{"error": "' in found
    assert b"Traceback" not in found
    assert b"/regard/" not in found


def test_who_asks_twice_to_leave_does_not_wait():
    async def handler(request):
        await asyncio.sleep(60)
        return HttpResponse(200)

    def refuse(status, reason):
        return HttpResponse(status, reason.encode())

    async def test():
        server, stop = HttpServer(handler, refuse, HttpLimits()), asyncio.Event()
        port = await server.start("127.0.0.1", 0)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        leaving = asyncio.ensure_future(drained(server, stop))
        await asyncio.sleep(0.2)
        assert not leaving.done()
        stop.set()
        async with asyncio.timeout(5):
            assert not await leaving
        writer.close()

    asyncio.run(test())


# ---------------------------------------------------------------- what cannot begin
def test_a_service_without_its_model_says_so_in_one_line(tmp_path):
    command = [sys.executable, "-m", "regard", "serve", "models/en-de", "--port", "0", "--workers", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("regard: models/en-de")
    assert ended.stderr.count("\n") == 1


def test_a_service_without_its_libraries_says_what_to_install():
    hide = "import sys; sys.modules['h11'] = None; sys.argv = ['regard', 'serve', 'en-de']"
    code = f"{hide}; from regard.cli.main import main; sys.exit(main())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert ended.stderr == 'regard: h11: not installed; install it with: pip install "regard[serve]"\n'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "its name does not say which languages it translates; if it is a translator, write"),
        (["en:de="], "expected SOURCE:TARGET=MODEL"),
        (["en=x"], "expected SOURCE:TARGET=MODEL"),
        (["models/en-de", "--prefix", "mt/"], "expected a path such as /translator"),
        (["models/en-de", "--ask", "en:de"], "expected SOURCE:TARGET=TEXT"),
        (["models/en-de", "--ask", "de:en=x"], "--ask de:en: no model is served that translates from de into en"),
        (["models/en-de", "--key-file", "no such file"], "cannot be read as text"),
    ],
)
def test_what_cannot_be_meant_is_refused(regard, words, message):
    regard("serve", *words, "--port", "0", "--workers", "1").refused(message)


def test_languages_are_named_or_read_from_the_name():
    assert direction("models/en-de") == Direction(Path("models/en-de"), "en", "de")
    assert direction("models/big_EN_DE") == Direction(Path("models/big_EN_DE"), "en", "de")
    assert direction("pt-BR:zh=m") == Direction(Path("m"), "pt-br", "zh-hans")


def test_models_have_different_names(tmp_path):
    one, other = tmp_path / "a" / "m", tmp_path / "b" / "m"
    assert names([Direction(one, "en", "de"), Direction(other, "en", "de")]) == [str(one), str(other)]
    assert names([Direction(one, "en", "de"), Direction(tmp_path / "n", "en", "de")]) == ["m", "n"]
    with pytest.raises(RecipeError, match="given twice for en to de"):
        names([Direction(one, "en", "de"), Direction(one, "en", "de")])


def test_files_of_options_are_read_or_refused(tmp_path):
    (tmp_path / "keys").write_text("one\n\n  two \n")
    assert read_keys(tmp_path / "keys") == ("one", "two")
    (tmp_path / "none").write_text("\n")
    with pytest.raises(RecipeError, match="holds no key"):
        read_keys(tmp_path / "none")
    with pytest.raises(ServingError, match="cannot be written"):
        opened(tmp_path / "no" / "file")
    assert checked("/mt") == "/mt"
