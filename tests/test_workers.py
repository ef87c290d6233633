"""Many processes say what one would, in order, and end with the one that began them."""

import io
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch

from regard.decoding.options import SearchOptions
from regard.engine import load
from regard.errors import DecodingError, ModelFormatError
from regard.files import write_manifest
from regard.workers import FORKS, LARGE, ROUND, SMALL, WINDOW, Workers, cores, serve, share

TEXTS = ["abc de", "", "a", " \t", "edc ba", "a", "bad cab " * 3, "é\udc80"]
SEARCH = SearchOptions(beam=3, n_best=2, length_penalty=0.5, cap=8)


@pytest.fixture(scope="module")
def workers(model):
    with Workers(model, 2) as found:
        yield found


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("prefix", [None, "AB"])
def test_workers_say_bit_for_bit_what_an_engine_with_one_thread_says(workers, model, one_thread, prefix):
    expected = load(model).translate(TEXTS, SEARCH, None if prefix is None else [prefix] * len(TEXTS))
    assert list(workers.translate(TEXTS, SEARCH, prefix)) == expected
    assert workers.search == load(model).search


def test_a_stream_of_many_windows_keeps_its_order_and_is_read_only_a_little_ahead(workers):
    taken, search = [], SearchOptions(beam=1, cap=2)

    def lines():
        for number in range(4 * WINDOW + 3):
            taken.append(number)
            yield f"line {number}"

    sources = []
    for found in workers.translate(lines(), search):
        sources.append(found.source)
        assert len(taken) <= len(sources) + 2 * WINDOW
    assert sources == [f"line {number}" for number in range(4 * WINDOW + 3)]
    assert list(workers.translate([], search)) == []


def test_the_mistake_of_a_request_comes_back_as_it_was_and_the_next_request_is_served(workers):
    with pytest.raises(DecodingError, match="prefix 'é'"):
        list(workers.translate(["ab"], SEARCH, "é"))
    assert [one.source for one in workers.translate(["ab"], SEARCH)] == ["ab"]


def test_a_model_that_cannot_be_read_is_refused_in_its_own_words(tmp_path):
    with pytest.raises(ModelFormatError, match="no such model directory"), Workers(tmp_path / "nowhere", 1):
        pass


def test_a_worker_that_dies_is_an_error_and_not_a_wait(model):
    with Workers(model, 1) as found:
        threading.Timer(0.3, os.kill, (found._workers[0].process.pid, signal.SIGKILL)).start()
        for texts in (["abc de"] * 100_000, ["ab"]):  # dies at it, is dead before it
            with pytest.raises(DecodingError, match=r"ended unexpectedly \(exit code -9\)"):
                list(found.translate(texts))


def test_an_interrupt_ends_every_worker(model):
    processes = []

    def interrupted():
        with Workers(model, 1) as found:
            processes.extend(worker.process for worker in found._workers)
            next(found.translate(["abc de"] * 3 * WINDOW, SearchOptions(beam=1, cap=2)))
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


@pytest.mark.parametrize("texts", [[], [""], ["a" * n for n in (3, 900, 40, 41, 0, 70_000, 5)], ["ab" * 20] * 3000])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_shares_hold_every_text_once_the_longest_first_and_none_is_much_too_large(texts, workers):
    parts = share(texts, workers)
    places = [place for part in parts for place in part]
    assert sorted(places) == list(range(len(texts)))
    lengths = [len(texts[place]) for place in places]
    assert lengths == sorted(lengths, reverse=True)
    left = sum(lengths) + len(texts)
    for start in range(0, len(parts), workers):
        together = parts[start : start + workers]
        for part in together:
            without_last = sum(len(texts[place]) + 1 for place in part[:-1])
            assert without_last < min(LARGE, max(SMALL, ROUND * left / workers))
        left -= sum(len(texts[place]) + 1 for part in together for place in part)


def test_a_worker_answers_line_for_line(model, one_thread):
    asked = {"texts": ["ab", ""], "search": SEARCH.model_dump(), "candidates": True}
    requests = [{**asked, "prefix": prefix} for prefix in (None, "A", "é")]
    answers = io.StringIO()
    serve(lambda: load(model), [json.dumps(request) for request in requests], answers)
    hello, *found, refused = map(json.loads, answers.getvalue().splitlines())
    assert SearchOptions.model_validate(hello["found"]) == load(model).search
    for request, answer in zip(requests, found, strict=False):
        start = request["prefix"]
        expected = load(model).translate(["ab", ""], SEARCH, None if start is None else [start, start])
        assert [[c[0] for c in one] for one in answer["found"]] == [
            [c.text for c in one.candidates] for one in expected
        ]
    assert refused["error"] == "DecodingError"


def test_workers_write_what_an_engine_writes(workers, model, one_thread):
    for beam in (1, 3):
        search = SearchOptions(beam=beam, cap=8)
        assert list(workers.write(TEXTS, search)) == load(model).write(TEXTS, search)


def test_a_worker_says_why_it_cannot_begin(tmp_path):
    answers = io.StringIO()
    write_manifest(tmp_path, {})
    serve(lambda: load(tmp_path), [], answers)
    assert json.loads(answers.getvalue())["error"] == "ModelFormatError"


def test_there_is_a_core():
    assert 1 <= cores() <= os.cpu_count()


def forks_of(process):
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def alive(pid):
    """Dead ones may wait to be told of."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def gone(pids):
    for _ in range(100):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


only_forks = pytest.mark.skipif(not FORKS, reason="only on Linux are workers forks")


@only_forks
def test_several_workers_are_forks_of_one_process_and_end_with_the_block(model):
    with Workers(model, 3) as found:
        (root,) = {worker.process for worker in found._workers}
        pids = [root.pid, *forks_of(root)]
        assert len(pids) == 4
        assert all(map(alive, pids))
        assert list(found.write(["ab"] * 20)) == load(model).write(["ab"] * 20)
    assert gone(pids)


@only_forks
def test_a_fork_that_dies_is_an_error_and_takes_the_others_with_it(model):
    with Workers(model, 2) as found:
        root = found._workers[0].process
        pids = forks_of(root)
        threading.Timer(0.3, os.kill, (pids[1], signal.SIGKILL)).start()
        with pytest.raises(DecodingError, match=r"ended unexpectedly \(exit code -9\)"):
            list(found.translate(["abc de"] * 100_000))
        assert gone(pids)


@only_forks
def test_workers_whose_parent_is_gone_end_by_themselves(model):
    found = Workers(model, 2)
    with found:
        root = found._workers[0].process
        pids = [root.pid, *forks_of(root)]
        for worker in found._workers:
            worker.requests.close()
        assert root.wait(timeout=20) == 0
        assert gone(pids)


@only_forks
def test_a_model_that_forks_cannot_read_is_refused_too(tmp_path):
    with pytest.raises(ModelFormatError, match="no such model directory"), Workers(tmp_path / "nowhere", 2):
        pass


def test_without_forks_every_worker_reads_the_model_for_itself(model, monkeypatch):
    monkeypatch.setattr("regard.workers.FORKS", False)
    with Workers(model, 2) as found:
        assert len({worker.process.pid for worker in found._workers}) == 2
        assert list(found.write(["ab"] * 20)) == load(model).write(["ab"] * 20)
