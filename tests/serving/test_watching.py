"""What `regard watch` reads of a run directory, and what it refuses."""

import asyncio
import json

import pytest

from regard.files import write_atomically
from regard.recipe import folder
from regard.serving import watching
from regard.serving.http import HttpRequest
from regard.serving.watching import Watching, event, frame, tail
from regard.training.events import Saved, Stepped, to_json

LINES = [to_json(Saved(step, f"checkpoints/{'x' * step}")) + "\n" for step in range(1, 8)]


def numbers(found):
    return [one["step"] for one in found.lines]


def answered(path, query="", *, at, method="GET"):
    request = HttpRequest(method, path, query, {}, b"", "")
    return asyncio.run(Watching(at).handle(request))


def test_files_are_called_as_runs_call_them():
    assert (watching.RECIPE, watching.LOG) == (folder.RECIPE, folder.LOG)


@pytest.mark.parametrize("most", [70, 100, 10_000])
def test_in_pieces_of_any_size_it_is_the_same_log(tmp_path, most):
    path = tmp_path / "log"
    path.write_text("".join(LINES), encoding="utf-8")
    story, start, found = "", 0, []
    while True:
        part = tail(path, story, start, event, most)
        assert part.restarted == (story == "")
        assert part.damaged == 0
        found += numbers(part)
        story, start = part.story, part.next
        if not part.more:
            break
    assert found == [1, 2, 3, 4, 5, 6, 7]
    assert start == path.stat().st_size


def test_half_a_line_waits_for_its_other_half(tmp_path):
    path = tmp_path / "log"
    path.write_text(LINES[0] + LINES[1][:20], encoding="utf-8")
    first = tail(path, "", 0, event)
    assert (numbers(first), first.damaged, first.next) == ([1], 0, len(LINES[0]))
    with path.open("a", encoding="utf-8") as file:
        file.write(LINES[1][20:])
    assert numbers(tail(path, first.story, first.next, event)) == [2]


def test_a_log_that_was_written_anew_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "log"
    path.write_text("".join(LINES), encoding="utf-8")
    before = tail(path, "", 0, event)
    write_atomically(path, LINES[0] + LINES[1])
    after = tail(path, before.story, before.next, event)
    assert after.restarted
    assert numbers(after) == [1, 2]
    path.write_text(LINES[0], encoding="utf-8")  # the same file, cut
    assert numbers(tail(path, after.story, after.next, event)) == [1]
    path.unlink()
    gone = tail(path, after.story, after.next, event)
    assert (gone.restarted, gone.lines, gone.next) == (True, (), 0)


@pytest.mark.parametrize(
    "line", [b"{ torn", b"[]", b"3", b"\xff\xfe", b'{"event": "Later"}', b'{"event": "Saved", "x": NaN}', b"[" * 5000]
)
def test_a_damaged_line_is_passed_over_and_counted(tmp_path, line):
    path = tmp_path / "log"
    path.write_bytes(LINES[0].encode() + line + b"\n\n" + LINES[1].encode())
    found = tail(path, "", 0, event)
    assert (numbers(found), found.damaged) == ([1, 2], 1)


def test_a_line_that_no_answer_can_hold_does_not_stop_it(tmp_path):
    path = tmp_path / "log"
    path.write_text("x" * 250 + "\n" + LINES[0], encoding="utf-8")
    story, start, found, damaged = "", 0, [], 0
    for _ in range(5):
        part = tail(path, story, start, event, 100)
        story, start, found, damaged = part.story, part.next, found + numbers(part), damaged + part.damaged
    assert found == [1]
    assert damaged == 3  # its three parts


def test_what_is_not_finite_is_told_as_text(tmp_path):
    step = Stepped(1, 0, float("nan"), 0.1, float("inf"), 1, 1.0, 0.1, 1.0, None)
    (tmp_path / "training.jsonl").write_text(to_json(step) + "\n", encoding="utf-8")
    found = json.loads(answered("/events", at=tmp_path).body, parse_constant=pytest.fail)
    assert found["lines"][0]["loss"] == "nan"


@pytest.mark.parametrize(
    ("pictures", "good"),
    [
        ([], True),
        ([{"source": ["a", "b"], "target": ["c"], "weights": [[0.5, 0.5]]}], True),
        ([{"source": ["a", "b"], "target": ["c"], "layers": [[[0.5, 0.5]]] * 2}], True),
        ([{"source": ["a", "b"], "target": ["c"], "layers": [[[0.5, 0.5]], [[1]]]}], False),
        ([{"source": ["a", "b"], "target": ["c"], "layers": []}], False),
        ([{"source": ["a", "b"], "target": ["c"], "weights": [[0.5]]}], False),
        ([{"source": ["a"], "target": ["c", "d"], "weights": [[1]]}], False),
        ([{"source": ["a"], "target": ["c"], "weights": [["1"]]}], False),
        ([{"source": ["a"], "weights": []}], False),
        (None, False),
    ],
)
def test_a_frame_has_a_weight_for_each_pair_of_tokens(tmp_path, pictures, good):
    (tmp_path / "film.jsonl").write_text(json.dumps({"step": 3, "pictures": pictures}) + "\n", encoding="utf-8")
    found = tail(tmp_path / "film.jsonl", "", 0, frame)
    assert (len(found.lines), found.damaged) == ((1, 0) if good else (0, 1))


def test_a_run_before_its_first_event_and_after_its_last(tmp_path):
    (tmp_path / "recipe.yaml").write_text("a: 1\n", encoding="utf-8")
    empty = json.loads(answered("/events", at=tmp_path).body)
    assert (empty["lines"], empty["next"], empty["story"]) == ([], 0, "")
    begun = json.loads(answered("/run", at=tmp_path).body)
    shown = {"name": tmp_path.name, "recipe": "a: 1\n", "figures": None}
    assert begun == {**shown, "finished": False, "report": False, "service": False}
    (tmp_path / "manifest.json").write_text('{"validation": {"bleu": 3}}', encoding="utf-8")
    assert json.loads(answered("/run", at=tmp_path).body)["figures"] == {"bleu": 3}
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    assert json.loads(answered("/run", at=tmp_path).body)["figures"] is None


def test_only_what_is_meant_can_be_asked_for(tmp_path):
    (tmp_path / "secret").write_text("no", encoding="utf-8")
    for path in ("/secret", "/static/../secret", "/static/%2e%2e/secret", "/events/..", "/static/", "/report"):
        assert answered(path, at=tmp_path).status == 404
    assert answered("/run", at=tmp_path, method="POST").status == 405
    for query in ("from=-1", "from=x", "from=1&from=2", f"from={'9' * 20}"):
        assert answered("/events", query, at=tmp_path).status == 400
    page = answered("/", at=tmp_path)
    assert page.status == 200
    assert b"watch.js" in page.body


def test_a_report_reaches_nothing_but_itself(tmp_path):
    (tmp_path / "report.html").write_text("<p>", encoding="utf-8")
    found = answered("/report", at=tmp_path)
    assert found.body == b"<p>"
    assert dict(found.headers)["Content-Security-Policy"].startswith("sandbox allow-scripts; default-src 'none'")


def test_what_is_no_run_is_refused(regard, tmp_path):
    regard("watch", tmp_path / "nowhere").refused("no such directory")
    regard("watch", tmp_path).refused("no run", "recipe.yaml")
    (tmp_path / "recipe.yaml").write_text("", encoding="utf-8")
    regard("watch", tmp_path, "--host", "203.0.113.1", "--port", "0").refused("cannot listen there", "--port")
