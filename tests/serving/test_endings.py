"""Workers that die and services that leave: who is told, who is answered, and that nothing stays behind.

A worker that is stopped (SIGSTOP) holds what it was asked for as long as a test likes, on a fast machine or a busy one.
"""

import contextlib
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product
from pathlib import Path

import pytest
from served import EN_DE, connect, heard, outcome, post, serving, statuses

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found as Linux shows them")
LONG = " ".join(["abc", "deb", "cab"] * 10)
START_SECONDS = 5.0  # of the processor: on a machine that has nothing else to do, a new worker is there after them


@pytest.fixture(scope="module")
def ended(model, tmp_path_factory):
    """A service whose worker was killed at its work, and which then left with 32 requests in flight."""
    with serving(tmp_path_factory.mktemp("ended"), f"en:de={model}") as running:
        yield running


def readiness(running):
    try:
        with urllib.request.urlopen(running.address + "/ready", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def processor_seconds(pid):
    """That a process has computed for."""
    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


def stopped(running):
    """The only worker, which does nothing now."""
    (worker,) = running.workers
    os.kill(worker, signal.SIGSTOP)
    return worker


def test_a_worker_killed_at_its_work_is_told_to_who_waits_for_it_and_comes_back(ended):
    worker = stopped(ended)
    with ThreadPoolExecutor(2) as clients:
        held = clients.submit(outcome, ended.address, {"q": "abc", **EN_DE})
        ended.until(lambda: ended.figure("running_texts") == 1)
        waiting = clients.submit(outcome, ended.address, {"q": "de", **EN_DE})
        ended.until(lambda: ended.figure("waiting_texts") == 1)
        os.kill(worker, signal.SIGKILL)
        assert held.result() == (503, "1", {"error": "The model failed on this batch; try again"})
        assert readiness(ended) == (503, {"status": "unready", "workers": {"en-de": 0}})
        assert waiting.result()[0] == 200  # by the next worker
    (fresh,) = ended.workers
    assert fresh != worker
    assert processor_seconds(fresh) <= START_SECONDS
    assert readiness(ended) == (200, {"status": "ok", "workers": {"en-de": 1}})
    assert ended.figure("worker_restarts") == 1


def test_a_service_that_leaves_answers_all_32_requests_in_flight(ended):
    worker = stopped(ended)
    texts = [f"{LONG} {'abcde'[number % 5]}" for number in range(32)]
    with ThreadPoolExecutor(32) as clients:
        asked = [clients.submit(outcome, ended.address, {"q": text, **EN_DE}) for text in texts]
        ended.until(lambda: ended.figure("running_texts") + ended.figure("waiting_texts") == 32)
        with connect(ended.address) as probe:
            probe.sendall(b"GET /ready HTTP/1.1\r\n")  # the rest later: it was let in before the end
            time.sleep(0.2)
            ended.process.send_signal(signal.SIGTERM)
            ended.until(lambda: {"event": "draining"}.items() <= ended.entries()[-1].items())
            probe.sendall(b"Host: x\r\n\r\n")
            found = heard(probe)
        assert statuses(found) == [503]
        assert b'{"status": "draining"' in found
        ended.until(lambda: refused(ended.port))
        assert not any(one.done() for one in asked)
        os.kill(worker, signal.SIGCONT)
        assert [one.result()[0] for one in asked] == [200] * 32
    assert ended.process.wait(timeout=60) == 0
    assert not Path(f"/proc/{worker}").exists()
    entries = ended.entries()
    after = entries[[entry["event"] for entry in entries].index("draining") :]
    assert sum(entry.get("route") == "/translate" and entry["status"] == 200 for entry in after) == 32
    assert "abc" not in ended.log.read_text()


def refused(port):
    """Whether nobody listens any more."""
    with contextlib.closing(socket.socket()) as caller:
        return caller.connect_ex(("127.0.0.1", port)) != 0


def test_a_search_that_takes_too_long_is_given_up_and_its_worker_kept(model, tmp_path):
    words = map("".join, product("abcde", repeat=5))
    text = "\n".join(islice(words, 800))  # a search of seconds
    with serving(tmp_path, f"en:de={model}", "--timeout", "0.3") as running:
        before = running.workers
        told = outcome(running.address, {"q": text, **EN_DE, "alternatives": 7})
        assert told == (504, "1", {"error": "Timeout: no answer within 0.3 seconds"})
        running.until(lambda: running.figure("running_texts") == running.figure("waiting_texts") == 0)
        assert running.figure("worker_restarts") == 0
        assert running.workers == before


# ---------------------------------------------------------------- with another engine, and a log that holds texts
@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    """A service of a model that was exported for CTranslate2."""
    pytest.importorskip("ctranslate2", reason="the engine is not installed")
    from regard.exporting.ctranslate2 import export_ctranslate2

    folder = tmp_path_factory.mktemp("exported")
    export_ctranslate2(model, folder / "fast")
    (folder / "keys").write_text("a-secret\n")
    options = ("--engine", "ctranslate2", "--key-file", folder / "keys", "--log-texts")
    with serving(folder, f"en:de={folder / 'fast'}", *options) as running:
        yield running


def keyed(body):
    return {**EN_DE, "api_key": "a-secret", **body}


def test_another_engine_translates_as_the_first_and_says_what_it_cannot(exported, engine):
    plain = engine.write(["abc de", "cab"])
    assert post(exported.address, "/translate", keyed({"q": ["abc de", "cab"]})) == {"translatedText": plain}
    page = post(exported.address, "/translate", keyed({"q": "<p>abc <b>de</b></p>", "format": "html"}))
    assert page["translatedText"].replace("<b>", "").replace("</b>", "") == f"<p>{plain[0]}</p>"
    assert page["translatedText"].count("<b>") == page["translatedText"].count("</b>") == 1
    found = post(exported.address, "/alternatives", keyed({"q": "abc de", "prefix": "A", "alternatives": 2}))
    (expected,) = engine.translate(["abc de"], None, ["A"])
    assert [one["text"][:1] for one in found["candidates"]] == ["A"] * 3
    assert found["candidates"][0]["text"] == expected.text
    scored = post(exported.address, "/score", keyed({"q": "abc", "s": "ABC"}))["scores"]
    assert scored[0]["tokens"] == 4
    blind = {"error": "Invalid request: this model translates, but cannot be looked into"}
    assert outcome(exported.address, keyed({"q": "abc"}), "/explain") == (422, None, blind)
    assert outcome(exported.address, keyed({"q": "abc", "check": True})) == (422, None, blind)


def test_another_engine_refuses_a_glossary_that_its_translation_does_not_follow(exported, engine):
    (plain,) = engine.write(["abc de"])
    followed = keyed({"q": "abc de", "glossary": {"de": plain.split()[0]}})
    assert outcome(exported.address, followed) == (200, None, {"translatedText": plain})
    reason = "required: the ctranslate2 engine cannot be held to given words; use the torch engine"
    refusal = (422, None, {"error": f"Invalid request: {reason}"})
    assert outcome(exported.address, keyed({"q": "abc de", "glossary": {"de": "EEE"}})) == refusal
    assert outcome(exported.address, keyed({"q": "abc %s de", "glossary": {"de": "EEE"}})) == refusal
    for code in ("%s", "abc"):
        kept = post(exported.address, "/translate", keyed({"q": f"de {code} cab", "do_not_translate": ["abc"]}))
        assert kept["translatedText"].count(code) == 1


def test_a_log_that_is_to_hold_texts_holds_them_and_no_key(exported):
    post(exported.address, "/translate", keyed({"q": "bad cab"}))
    assert outcome(exported.address, {"q": "rejected", **EN_DE, "api_key": "wrong"})[0] == 403
    asked = [entry for entry in exported.entries() if entry["event"] == "asked"]
    assert {"event": "asked", "route": "/translate", "fields": {"q": "bad cab", **EN_DE}}.items() <= asked[-1].items()
    assert not any(word in exported.log.read_text() for word in ("a-secret", "rejected", "wrong"))


def test_who_asks_a_second_time_to_leave_does_not_wait(exported):
    worker = stopped(exported)
    client = threading.Thread(target=lost, args=(exported.address,))
    client.start()
    headers = {"Authorization": "Bearer a-secret"}
    request = urllib.request.Request(exported.address + "/metrics", headers=headers)

    def busy():
        with urllib.request.urlopen(request, timeout=60) as answer:
            return b"regard_running_texts 1" in answer.read()

    exported.until(busy)
    exported.process.send_signal(signal.SIGTERM)
    exported.until(lambda: exported.entries()[-1]["event"] == "draining")
    exported.process.send_signal(signal.SIGTERM)
    exported.process.wait(timeout=20)  # and not the 30 seconds that it would have waited for the answer
    client.join()
    assert not Path(f"/proc/{worker}").exists()


def lost(address):
    with pytest.raises((OSError, ValueError)):  # the connection ends without an answer
        outcome(address, keyed({"q": "abc"}))
