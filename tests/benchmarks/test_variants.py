"""The figures of the family: what is asked of `regard`, what is kept, and what the result says. Nothing is trained."""

import json
from dataclasses import replace

import pytest

from benchmarks import variants
from benchmarks.family.bench import Bench, Found, fingerprint
from benchmarks.variants import PARTS, Part, budgets, command, finish, finished, notes, result
from regard.training.options import TrainingOptions


class Typed:
    """Stands for `regard`: keeps the commands, makes model directories, and answers what it is told to answer."""

    def __init__(self, answers=()):
        self.commands, self.answers = [], dict(answers)

    def __call__(self, *words):
        self.commands.append([str(word) for word in words])
        if words[0] != "train":
            return json.dumps(self.answers[words[0]])
        folder = words[words.index("--resume" if "--resume" in words else "--out") + 1]
        folder.mkdir(parents=True, exist_ok=True)
        facts = {"seconds": 90, "steps": 7, "validation": {"loss": 1.5}}
        (folder / "manifest.json").write_text(json.dumps(facts))
        return ""


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path / "data", tmp_path / "work", regard=Typed())


# ---------------------------------------------------------------- models
def test_a_recipe_is_known_by_its_settings_and_another_file_by_its_bytes(tmp_path):
    def known(name, content):
        (tmp_path / name).write_text(content)
        return fingerprint([tmp_path / name])

    assert known("a.yaml", "model: {width: 8}") == known("b.yaml", "# why\nmodel:\n  width: 8  # small\n")
    assert known("a.yaml", "model: {width: 8}") != known("a.yaml", "model: {width: 9}")
    assert known("a.txt", "one\n") == known("b.txt", "one\n")
    assert known("a.txt", "one\n") != known("a.txt", "two\n")
    assert fingerprint([tmp_path / "one" / "model"]) == fingerprint([tmp_path / "two" / "model"])
    assert fingerprint(["--steps", "1"]) != fingerprint(["--steps", "2"])


def test_a_model_is_trained_once_and_goes_on_where_it_was_interrupted(bench):
    model = bench.train("gpt", ["x.yaml"])
    assert bench.train("gpt", ["x.yaml"]) == model
    assert model.minutes == 1.5
    (model.folder / "manifest.json").unlink()
    bench.train("gpt", ["x.yaml"])
    folder = str(model.folder)
    assert bench.regard.commands == [["train", "x.yaml", "--out", folder], ["train", "--resume", folder]]


def test_a_budget_is_that_of_the_part_before_that_of_the_training_and_makes_another_model(bench):
    quick = replace(bench, budget="1m")
    folders = [one.train("gpt", ["x"], "9m").folder for one in (bench, quick)]
    assert folders[0] != folders[1]
    assert [words[1:4] for words in bench.regard.commands] == [["x", "--budget", "9m"], ["x", "--budget", "1m"]]


def test_language_models_are_judged_by_the_last_validation_of_their_manifest(bench):
    found = PARTS["gpt"].measure(bench)
    timed = {"gpt_val_loss_as_timed": 1.5, "gpt_minutes_as_timed": 1.5}
    assert found.figures == {"gpt_val_loss": 1.5, "gpt_minutes": 1.5, **timed}
    assert "random batches" in found.notes
    assert PARTS["gpt-15m"].measure(bench).figures == {"gpt_15m_val_loss": 1.5, "gpt_15m_minutes": 1.5}


def test_digits_are_tested_with_images_that_the_recipe_does_not_read(bench):
    typed = Typed({"see": {"accuracy": 98.75, "images": 10_000}})
    found = PARTS["vit"].measure(replace(bench, regard=typed))
    assert found.figures == {"vit_mnist_accuracy": 98.75, "vit_minutes": 1.5}
    images, labels = (str(bench.data / name) for name in PARTS["vit"].tests)
    assert typed.commands[1][2:] == [images, "--labels", labels, "--json"]


@pytest.mark.parametrize("name", PARTS)
def test_no_recipe_reads_what_its_part_is_tested_with(name):
    part = PARTS[name]
    read = part.files()[: -len(part.tests) or None]
    assert read
    assert not set(read) & set(part.tests)


# ---------------------------------------------------------------- finished parts
@pytest.fixture
def counted():
    """A part that counts how often it was measured."""
    counts = []

    def measure(bench):
        counts.append(bench.budget)
        return Found({"times": len(counts)}, 2.0, "counted")

    return Part(measure, "mnist", brackets=True), counts


def test_a_finished_part_stands_until_something_else_is_asked(bench, counted, tmp_path):
    part, counts = counted
    program = tmp_path / "evalb"
    program.write_text("1")
    for asked in (bench, bench, replace(bench, evalb=program), bench, replace(bench, budget="1m")):
        finish("vit", part, asked, tmp_path)
    # The second finds the first; EVALB is new; without it nothing is missing; another budget is another figure.
    assert counts == [None, None, "1m"]
    program.write_text("2")
    finish("vit", part, replace(bench, budget="1m", evalb=program), tmp_path)
    assert len(counts) == 4
    assert finished(tmp_path)["vit"]["figures"] == {"times": 4}


def kept(figures, minutes=1.0, **asked):
    facts = {"commit": "abc", "date": "2026-01-01", "notes": "words.", "minutes": minutes}
    return {"asked": {"recipe": "0", "budget": None, **asked}, "figures": figures, **facts}


def test_the_result_joins_all_parts_and_says_what_is_missing_and_what_was_cut_short():
    some = {"gpt": kept({"gpt_val_loss": 1.5}), "parse": kept({"parse_f1_rnn": 70.0}, 3.0, budget="5m", evalb="e")}
    found = result(some)
    assert found.figures == {"gpt_val_loss": 1.5, "parse_f1_rnn": 70.0}
    assert found.minutes == 4.0
    assert found.command == "python -m benchmarks.variants --only gpt parse --budget parse=5m --evalb evalb"
    gpt, parse, missing = found.notes.splitlines()[-3:]
    assert gpt == "- gpt (commit abc, 2026-01-01): words."
    assert parse.endswith("words. A quick look: 5m for each training, not what the recipe says.")
    assert missing == "- not measured: gpt-speed, gpt-15m, vit, polarity, trec, t5"


def test_a_whole_result_needs_no_options_and_misses_nothing():
    every = {name: kept({name: 1.0}) for name in PARTS}
    assert command(every) == "python -m benchmarks.variants"
    assert "not measured" not in notes(every)


# ---------------------------------------------------------------- the command
def test_parts_that_are_on_disk_join_the_result_of_those_that_are_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    file = tmp_path / PARTS["gpt"].files()[0]
    file.parent.mkdir()
    file.write_text("text")
    part = replace(PARTS["gpt"], measure=lambda bench: Found({"gpt_val_loss": len(bench.budget)}, 1.0, "x"))
    monkeypatch.setitem(variants.PARTS, "gpt", part)
    (tmp_path / "variants").mkdir()
    (tmp_path / "variants" / "vit.json").write_text(json.dumps(kept({"vit_mnist_accuracy": 98.7})))
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path)]
    variants.main(["--only", "gpt", "--budget", "gpt=30s", *places])
    found = json.loads((tmp_path / "variants.json").read_text())
    assert found["figures"] == {"gpt_val_loss": 3, "vit_mnist_accuracy": 98.7}
    assert found["command"].endswith("--only gpt vit --budget gpt=30s")
    assert capsys.readouterr().out == (tmp_path / "variants.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "gpt"], "does not hold tinyshakespeare/input.txt.gz"),
        (["--only", "vit"], "does not hold mnist/"),
        (["--only", "nothing"], "invalid choice: 'nothing'"),
    ],
)
def test_a_command_that_cannot_be_followed_is_refused_before_anything_is_measured(
    words, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        variants.main([*words, "--work", str(tmp_path)])
    assert said in capsys.readouterr().err


def test_a_scorer_that_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Part, "files", lambda _: [])
    with pytest.raises(SystemExit):
        variants.main(["--only", "parse", "--evalb", str(tmp_path / "none"), "--work", str(tmp_path)])
    assert "none: no such program" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("vit", "not a duration"),
        ("vit=soon", "'soon' is not a duration"),
        ("gpt-speed=1m", "a part that trains"),
        ("nothing=1m", "a part that trains"),
    ],
)
def test_a_budget_that_means_nothing_is_refused(setting, said):
    with pytest.raises(ValueError, match=said):
        budgets([setting])


def test_budgets_are_read_as_the_command_reads_them():
    found = budgets(["vit=90s", "parse=1h30m"])
    assert [TrainingOptions(budget=found[name]).budget for name in ("vit", "parse")] == [90, 5400]
