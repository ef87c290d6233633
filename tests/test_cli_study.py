"""A study from the command line: what it writes is what its rows are, and stopped anywhere it goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_runs import STUDY

from regard.recipe.folder import read_recipe
from regard.run import Outcome
from regard.studies import rows as study_rows
from regard.studies.flops import Cost
from regard.studies.provenance import commit, machine

STEPS = 6


@pytest.fixture(scope="module")
def files(corpus):
    """All six options; the validation text is the beginning of the training text."""
    for side in ("source", "target"):
        lines = (corpus / f"train.{side}").read_text().splitlines()[:15]
        (corpus / f"valid.{side}").write_text("".join(f"{line}\n" for line in lines))
    names = {"source": "train", "valid-source": "valid", "test-source": "test"}
    pairs = [(f"--{option}", corpus / f"{name}.source") for option, name in names.items()]
    pairs += [(f"--{option.replace('source', 'target')}", corpus / f"{name}.target") for option, name in names.items()]
    return [word for pair in pairs for word in pair]


@pytest.fixture(scope="module")
def words(files):
    return [*files, "--quiet", *(word for setting in STUDY for word in ("--set", setting))]


@pytest.fixture
def study(regard, words):
    """study("bottleneck", out, …), six steps a row if nothing else is said."""

    def run(name, out, *arguments):
        length = () if {"--steps", "--budget"} & set(arguments) else ("--steps", STEPS)
        return regard("study", name, "--out", out, *words, *length, *arguments)

    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory, words):
    """A bottleneck study whose rows are done; tests only read them, or write other studies beside it."""
    out = tmp_path_factory.mktemp("study") / "s"
    command = [sys.executable, "-m", "regard", "study", "bottleneck", "--out", out, *words, "--steps", STEPS]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return out


@pytest.fixture
def copy(finished, tmp_path):
    """The same to be spoilt."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def told(out, name="bottleneck"):
    return json.loads((out / f"study-{name}.json").read_text(encoding="utf-8"))


def row(out, name):
    return (out / "rows" / name / "row.json").read_bytes()


def test_the_files_of_a_study_have_its_rows_and_where_they_come_from(finished):
    assert sorted(path.name for path in finished.iterdir()) == [
        *("plan.json", "rows", "study-bottleneck.html", "study-bottleneck.json", "study-bottleneck.md")
    ]
    content = told(finished)
    facts = ["command", "commit", "date", "machine", "minutes", "figures", "notes", "rows"]
    assert list(content) == facts
    assert content["command"].startswith("regard study bottleneck --out DIR --source")
    assert f"--steps {STEPS} --seed 1 --set text.kind=characters" in content["command"]
    assert "chosen by the dev set" in content["notes"]
    assert {"gap_short", "gap_long", "rnn: test BLEU", "transformer: training FLOPs"} <= set(content["figures"])
    assert content["minutes"] == pytest.approx(sum(one["minutes"] for one in content["rows"]), abs=0.01)
    page, markdown = ((finished / f"study-bottleneck.{kind}").read_text() for kind in ("html", "md"))
    for name in ("rnn", "gru-without-attention", "bidirectional-gru", "transformer"):
        assert f"<th scope=row>{name}</th>" in page
        assert f"| {name} |" in markdown


def test_the_scores_of_a_row_are_those_that_evaluate_gives(regard, finished, corpus):
    result = json.loads(row(finished, "transformer"))
    for part, bleu in (("valid", result["dev_bleu"]), ("test", result["test_bleu"])):
        asked = ("--source", corpus / f"{part}.source", "--target", corpus / f"{part}.target", "--json")
        found = json.loads(regard("evaluate", finished / "rows" / "transformer", *asked).out)
        assert bleu == pytest.approx(found["bleu"]["score"])
        assert part == "test" or result["dev_perplexity"] == pytest.approx(found["perplexity"], abs=1e-3)
    assert result["steps"] == STEPS
    assert len(result["outputs"]) == len((corpus / "test.source").read_text().splitlines())


def test_the_flops_of_a_row_are_those_of_its_lines_times_the_epochs(finished, corpus):
    result = json.loads(row(finished, "rnn"))
    sides = [(corpus / f"train.{side}").read_text().splitlines() for side in ("source", "target")]
    folder = finished / "rows" / "rnn"
    vocabulary = len(json.loads((folder / "shared.json").read_text())["characters"]) + 4
    cost = Cost(read_recipe(folder).model, vocabulary)
    once = sum(cost.training(len(source) + 1, len(target) + 1) for source, target in zip(*sides, strict=True))
    assert result["flops"] == pytest.approx(once * result["epochs"])


def test_a_second_call_trains_nothing_and_tells_the_same(study, finished):
    before, rows = told(finished), [row(finished, name) for name in ("rnn", "transformer")]
    ended = study("bottleneck", finished)
    assert ended.code == 0
    assert ended.lines[-1] == str(finished / "study-bottleneck.html")
    assert [row(finished, name) for name in ("rnn", "transformer")] == rows
    assert told(finished)["figures"] == before["figures"]


def test_a_study_stopped_between_rows_keeps_the_finished_ones(study, finished, tmp_path):
    out = tmp_path / "s"
    assert study("bottleneck", out, "--rows", "rnn").code == 0
    assert [one["name"] for one in told(out)["rows"]] == ["rnn"]
    first = row(out, "rnn")
    assert study("bottleneck", out, "--rows", "gru-without-attention", "--rows", "rnn").code == 0
    assert row(out, "rnn") == first
    assert [one["name"] for one in told(out)["rows"]] == ["rnn", "gru-without-attention"]
    weights = [folder / "rows" / "rnn" / "model.safetensors" for folder in (out, finished)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_row_killed_while_it_learns_ends_with_the_bytes_of_one_that_was_not(study, words, tmp_path):
    out, whole, asked = tmp_path / "s", tmp_path / "whole", ("--rows", "rnn", "--steps", 20)
    assert study("bottleneck", whole, *asked).code == 0
    command = [sys.executable, "-m", "regard", "study", "bottleneck", "--out", out, *words, *asked]
    process = subprocess.Popen([*map(str, command)], env={**os.environ})
    checkpoints, deadline = out / "rows" / "rnn" / "checkpoints", time.monotonic() + 120
    while not any(checkpoints.glob("step-*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (out / "rows" / "rnn" / "row.json").exists()
    assert study("bottleneck", out, *asked).code == 0
    first, second = (folder / "rows" / "rnn" / "model.safetensors" for folder in (out, whole))
    assert first.read_bytes() == second.read_bytes()
    log = (out / "rows" / "rnn" / "training.jsonl").read_text()
    assert log.count('"Started"') == 2


def test_an_interrupted_row_ends_the_study_without_a_report(study, monkeypatch, tmp_path):
    out = tmp_path / "s"
    monkeypatch.setattr(study_rows, "run", lambda _request: Outcome(out, interrupted=True))
    ended = study("bottleneck", out)
    assert (ended.code, ended.out) == (130, "")
    assert not (out / "study-bottleneck.json").exists()


def test_a_trained_row_that_was_not_scored_is_scored_and_not_trained(study, monkeypatch, copy):
    noted = json.loads(row(copy, "rnn"))
    (copy / "rows" / "rnn" / "row.json").unlink()
    monkeypatch.setattr(study_rows, "run", lambda _request: pytest.fail("trains"))
    monkeypatch.setattr(study_rows, "MANY", 1)  # now by processes, which must say the same
    monkeypatch.setattr(study_rows, "cores", lambda: 1)
    assert study("bottleneck", copy, "--rows", "rnn").code == 0
    again = json.loads(row(copy, "rnn"))
    for changing in ("date", "minutes", "commit"):
        noted.pop(changing), again.pop(changing)
    assert again == noted


def test_gradients_are_those_of_fresh_and_of_trained_models(study, finished):
    assert study("gradients", finished, "--rows", "rnn", "--rows", "transformer").code == 0
    found, known = told(finished, "gradients"), "powers of ten per 10 steps"
    assert {name for name in found["figures"] if known in name} == {
        f"{row}, {state}: {known}" for row in ("rnn", "transformer") for state in ("fresh", "trained")
    }
    assert found["figures"][f"rnn, fresh: {known}"] < 0  # it vanishes
    assert found["rows"] == [one for one in told(finished)["rows"] if one["name"] in ("rnn", "transformer")]


def test_progress_goes_to_stderr_row_by_row(regard, words, tmp_path):
    loud = [word for word in words if word != "--quiet"]
    ended = regard("study", "table3", "--out", tmp_path / "s", *loud, "--steps", 1, "--rows", "base", "--rows", "N-2")
    assert ended.code == 0
    assert "row 1 of 2: base, 1 step\n" in ended.err
    assert "N-2: dev PPL " in ended.err
    assert "directions are those of the paper" in ended.lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--steps", 7), ("steps (6)", "say the same")),
        (("--seed", 2), ("seed (1)",)),
        (("--set", "data.batch_tokens=99"), ("settings",)),
        (("--budget", "1m"), ("budget (None)", "steps (6)")),
        (("--steps", 6, "--budget", "1m"), ("--steps 6", "--budget 1m", "leave out one")),
        (("--rows", "transfomer"), ("--rows transfomer", "did you mean 'transformer'?")),
        (("--rows", "xyz"), ("known rows: rnn, gru-without-attention",)),
    ],
    ids=["steps", "seed", "settings", "budget", "both", "misspelt", "unknown"],
)
def test_what_does_not_fit_the_rows_that_are_there_is_refused(study, finished, arguments, said):
    study("bottleneck", finished, *arguments).refused(*said)


def test_a_refused_study_does_not_bind_the_next_one(study, tmp_path):
    study("bottleneck", tmp_path / "s", "--budget", "0m", "--rows", "rnn").refused("budget")
    assert study("bottleneck", tmp_path / "s", "--steps", 1, "--rows", "rnn").code == 0


def test_a_note_stands_in_every_file(study, copy):
    assert study("bottleneck", copy, "--note", "The rows were <late>.").code == 0
    assert "The rows were <late>." in json.loads((copy / "study-bottleneck.json").read_bytes())["notes"]
    assert "The rows were <late>." in (copy / "study-bottleneck.md").read_text()
    assert "The rows were &lt;late&gt;." in (copy / "study-bottleneck.html").read_text()


def test_another_text_under_the_same_names_is_refused(study, finished, corpus):
    path = corpus / "valid.target"
    before = path.read_text()
    path.write_text(before.replace("A", "B"))
    try:
        study("bottleneck", finished).refused("another text")
    finally:
        path.write_text(before)


def test_a_folder_of_something_else_is_refused(study, model):
    study("bottleneck", model).refused("not from a study")


def test_some_files_without_the_others_are_refused(regard, files, tmp_path):
    regard("study", "table2", "--out", tmp_path / "s", *files[:4]).refused("--test-source", "--valid-target", "add")
    assert not (tmp_path / "s").exists()


def test_without_files_it_looks_for_multi30k(regard, monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    regard("study", "table2", "--out", tmp_path / "s").refused("multi30k/test_2016_flickr.en.gz", "REGARD_DATA")


@pytest.mark.parametrize("name", ["plan.json", "rows/rnn/row.json"])
def test_a_damaged_note_is_named(study, copy, name):
    (copy / name).write_text("{")
    study("bottleneck", copy, "--rows", "rnn").refused(str(copy / name), "damaged")


def test_a_row_says_where_it_was_trained_and_by_which_code(study, finished, copy):
    for name in ("rnn", "transformer"):
        noted = json.loads(row(copy, name))
        (copy / "rows" / name / "row.json").write_text(
            json.dumps(noted | {"commit": f"of {name}", "machine": "theirs"})
        )
    assert study("bottleneck", copy, "--rows", "rnn", "--rows", "transformer").code == 0
    assert (told(copy)["commit"], told(copy)["machine"]) == ("of rnn and of transformer", "theirs")
    assert told(finished)["commit"] == commit()
    assert told(finished)["machine"].startswith(machine(1))
    assert not list((finished / "rows").glob("*.json"))


def test_an_unfinished_row_of_another_study_is_not_taken_for_one_of_this(study, monkeypatch, tmp_path):
    """`base` of levers is what the text gets by default, `base` of table3 that of the paper."""
    out = tmp_path / "s"

    def interrupted(request):
        request.out.mkdir(parents=True)
        return Outcome(out, interrupted=True)

    monkeypatch.setattr(study_rows, "run", interrupted)
    assert study("levers", out, "--rows", "base").code == 130
    monkeypatch.setattr(study_rows, "run", lambda _request: pytest.fail("goes on"))
    study("table3", out, "--rows", "base").refused("began as another row", "choose another --out")
    (out / "rows" / "base.begun.json").write_text("{")
    study("table3", out, "--rows", "base").refused("base.begun.json", "damaged")


def test_gradients_refuse_a_text_that_tells_nothing_before_a_row_is_trained(study, monkeypatch, corpus, tmp_path):
    monkeypatch.setattr(study_rows, "run", lambda _request: pytest.fail("trains"))
    for side in ("source", "target"):
        (tmp_path / side).write_text("a\n")
    asked = ("--valid-source", tmp_path / "source", "--valid-target", tmp_path / "target")
    study("gradients", tmp_path / "s", *asked).refused("gradients: 0 distances")


def test_gradients_read_the_text_as_the_rows_do(study, corpus, tmp_path):
    """A line that is no UTF-8 is dropped, if that was asked for."""
    names = [tmp_path / side for side in ("source", "target")]
    for name in names:
        name.write_bytes((corpus / f"train.{name.name}").read_bytes() + b"\xff\n")
    asked = ("--source", names[0], "--target", names[1], "--rows", "rnn", "--steps", 1)
    study("gradients", tmp_path / "s", *asked).refused("UTF-8")
    assert study("gradients", tmp_path / "s", *asked, "--set", "data.bad_lines=drop").code == 0


def test_a_row_of_the_same_name_with_other_settings_is_not_taken_for_it(study, copy):
    path = copy / "rows" / "rnn" / "row.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"settings": ["model.cell=gru"]}))
    study("bottleneck", copy, "--rows", "rnn").refused("other settings", "model.cell=gru")
