"""Levers that are more than one run: who is asked what, what is subtracted from what, what is kept."""

import json
from dataclasses import replace

import pytest
from typed_commands import Typed

from benchmarks import levers, quality
from regard.recipe.recipe import parse, read_tree


def answers(*scores):
    return [{"bleu": {"score": score}} for score in scores]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(quality, "WORK", tmp_path / "quality")
    there, back = (quality.plain(name, tmp_path, "30m") for name in ("multi30k-en-de", "multi30k-de-en"))
    return levers.Bench(tmp_path, tmp_path / "work", there, there, back)


def typed(monkeypatch, *found):
    regard = Typed(found)
    monkeypatch.setattr(quality, "regard", regard)
    return regard


def asked(regard, command):
    return [words for words in regard.commands if words[0] == command]


def test_several_seeds_are_compared_with_the_mean_of_these_seeds(bench, monkeypatch):
    regard = typed(monkeypatch, *answers(40.0, 41.0, 45.0, 41.5, 43.0))
    found = levers.ensemble(bench)
    assert (found["2 seeds as one: gain"], found["3 seeds as one: gain"]) == (1.0, 1.0)
    assert [words.count("--with") for words in asked(regard, "evaluate")] == [0, 0, 0, 1, 2]
    assert [words[words.index("--seed") + 1] for words in asked(regard, "train")] == ["1", "2", "3"]
    assert all("val.en.gz" in " ".join(words) for words in asked(regard, "evaluate"))
    assert not [words for words in regard.commands if "test_2016" in " ".join(words)]


def test_the_most_agreed_is_compared_with_the_best_of_a_beam(bench, monkeypatch):
    typed(monkeypatch, *answers(40.0, 40.5, 39.0))
    found = levers.mbr(bench)
    gains = [value for name, value in found.items() if name.endswith(": gain")]
    assert gains == [0.5, -1.0]


@pytest.mark.parametrize(("budget", "dropout"), [("12m", 0.1), ("30m", 0.2)])
def test_made_up_sources_stand_beside_the_pairs_in_the_recipe_of_two_files(
    bench, monkeypatch, tmp_path, budget, dropout
):
    """The one that as many files would be given for as long a run: it is what the other model had."""
    regard = typed(monkeypatch, {}, *answers(41.0, 40.0))
    there = quality.plain("multi30k-en-de", tmp_path, budget)
    found = levers.backtranslated(replace(bench, there=there))
    assert found["learned from made-up sources too: gain"] == 1.0
    (made,) = asked(regard, "backtranslate")
    assert "multi30k-de-en" in made[1]
    assert made[made.index("--input") + 1].endswith("train.de.gz")
    written = parse(read_tree(bench.work / "backtranslated" / "recipe.yaml"), "written")
    assert [corpus.tsv is None for corpus in written.data.corpora] == [True, False]
    expected = parse(read_tree(quality.ROOT / "recipes" / "multi30k-en-de.yaml"), "expected")  # of half an hour
    assert written.model == expected.model.model_copy(update={"dropout": dropout})
    unlike = {"budget": None, "epochs": written.training.epochs}  # how long, the command says
    assert written.training == expected.training.model_copy(update=unlike)


def test_a_student_of_the_same_kind_learns_from_the_pairs_and_from_its_teacher(bench, monkeypatch):
    regard = typed(monkeypatch, {}, *answers(41.0, 40.0))
    assert levers.distilled(bench)["learned from a teacher's translations too: gain"] == 1.0
    (words,) = asked(regard, "distil")
    assert {"--keep-original", "transformer", "30m"} <= set(words)


def test_a_part_tells_how_long_its_models_learned(bench, monkeypatch, tmp_path):
    regard = typed(monkeypatch, {}, *answers(41.0, 40.0))
    there = quality.plain("multi30k-en-de", tmp_path, "12m", ("training.threads=1",))
    levers.finish("distil", levers.Bench(tmp_path, bench.work, there, there, bench.back), tmp_path)
    told = json.loads((tmp_path / "distil.json").read_bytes())
    assert told["length"] == "12m training.threads=1"
    assert told["command"].endswith("--only distil --budget 12m --set training.threads=1")
    assert {"commit", "date", "machine"} <= told.keys()
    for command in ("train", "distil"):
        (words,) = asked(regard, command)
        assert {"12m", "training.threads=1"} <= set(words)
        assert "30m" not in words


def test_a_teacher_that_learned_longer_is_not_what_its_student_is_compared_with(bench, monkeypatch, tmp_path):
    regard = typed(monkeypatch, {}, *answers(41.0, 40.0))
    there = quality.plain("multi30k-en-de", tmp_path, "12m")
    levers.finish("distil", levers.Bench(tmp_path, bench.work, there, bench.there, bench.back), tmp_path)
    told = json.loads((tmp_path / "distil.json").read_bytes())
    assert told["length"] == "12m, with text by models of 30m"
    assert told["command"].endswith("--budget 12m --teachers 30m")
    (words,) = asked(regard, "distil")
    assert ("30m" in words[1], "12m" in words) == (True, True)
    student, alone = (words[1] for words in asked(regard, "evaluate"))
    assert student == str(bench.work / "distilled" / "student")
    assert alone == str(there.model(1))


def test_what_is_finished_is_not_measured_again_and_all_of_it_is_told(bench, monkeypatch, tmp_path, capsys):
    train = tmp_path / "multi30k"
    train.mkdir()
    for name in ("train.en.gz", "train.de.gz"):
        (train / name).touch()
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    typed(monkeypatch, *answers(40.0, 40.5, 39.0))
    for _ in range(2):
        levers.main(["--only", "mbr", "--out", str(tmp_path), "--work", str(bench.work)])
    content = json.loads((tmp_path / "levers.json").read_bytes())
    assert content["command"] == "python -m benchmarks.levers --only mbr --budget 30m"
    assert content["figures"]["the most agreed of 16 by bleu: gain"] == 0.5
    assert "the most agreed of 16 by chrf" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="--only mbr --budget 30m'; say the same"):
        levers.main(["--only", "mbr", "--budget", "60m", "--out", str(tmp_path), "--work", str(bench.work)])


def test_models_of_another_length_are_not_taken_for_these(monkeypatch, tmp_path):
    train = tmp_path / "multi30k"
    train.mkdir()
    for name in ("train.en.gz", "train.de.gz"):
        (train / name).touch()
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    monkeypatch.setattr(quality, "WORK", tmp_path / "quality")
    places = set()
    for budget in ("30m", "12m"):
        regard = typed(monkeypatch, {}, *answers(41.0, 40.0))
        levers.main(["--only", "distil", "--budget", budget, "--out", str(tmp_path / budget), "--work", str(tmp_path)])
        (words,) = asked(regard, "distil")
        places.add(words[words.index("--out") + 1])
    assert len(places) == 2
