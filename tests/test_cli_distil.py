"""A student learns what its teacher says; stopped anywhere, the same command goes on."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from tiny_runs import options

from regard.files import digest
from regard.recipe.folder import read_recipe

STUDENT = ("--steps", 4, "--quiet", *options("model.encoder_layers=2"))


@pytest.fixture(scope="module")
def texts(corpus, tmp_path_factory):
    """The first lines of the corpus, as two files: source and target."""
    folder = tmp_path_factory.mktemp("texts")
    for side in ("source", "target"):
        (folder / side).write_text("".join(f"{line}\n" for line in read(corpus / f"train.{side}")[:40]))
    return folder


@pytest.fixture
def distil(regard, model, texts):
    """distil(out, …): `regard distil` of the tiny model on the corpus, quietly."""

    def run(out, *arguments, teacher=model):
        return regard("distil", teacher, "--source", texts / "source", "--out", out, *STUDENT, *arguments)

    return run


@pytest.fixture(scope="module")
def said(model, texts):
    from regard.engine import load

    return load(model).write((texts / "source").read_text().splitlines())


def read(path):
    return path.read_text().splitlines()


def weights(out):
    return (out / "student" / "model.safetensors").read_bytes()


def test_the_student_learns_what_the_teacher_says_in_the_teachers_words(regard, distil, model, texts, said, tmp_path):
    out = tmp_path / "new" / "d"
    ended = distil(out)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert sorted(path.name for path in out.iterdir()) == ["distil.json", "student", "teacher.txt"]
    assert read(out / "teacher.txt") == said
    student = out / "student"
    assert (student / "shared.json").read_bytes() == (model / "shared.json").read_bytes()
    recipe = read_recipe(student)
    assert [c.files for c in recipe.data.corpora] == [(texts / "source", out / "teacher.txt")]
    assert (recipe.model.encoder_layers, recipe.model.decoder_layers) == (2, 1)
    assert regard("translate", student, "--with", model, stdin=b"ab\n").code == 0
    distil(out).refused("trained already")


def test_a_student_is_deep_in_its_encoder_and_shallow_in_its_decoder(regard, model, texts, tmp_path):
    asked = ("--source", texts / "source", "--out", tmp_path / "d", "--steps", 1)
    ended = regard("distil", model, *asked, "--set", "model.width=16", "--set", "data.batch_tokens=256")
    assert ended.code == 0
    assert f"translating {len(read(texts / 'source'))} lines\n" in ended.err
    found = read_recipe(tmp_path / "d" / "student").model
    assert found.encoder_layers >= 6
    assert found.decoder_layers == 1


def test_the_original_pairs_are_kept_when_asked_for(distil, corpus, texts, tmp_path):
    target = texts / "target"
    valid = ("--valid-source", corpus / "test.source", "--valid-target", corpus / "test.target")
    assert distil(tmp_path / "d", "--target", target, "--keep-original", *valid).code == 0
    recipe = read_recipe(tmp_path / "d" / "student")
    assert [c.target for c in recipe.data.corpora] == [tmp_path / "d" / "teacher.txt", target]
    assert {c.source for c in recipe.data.corpora} == {texts / "source"}
    assert [c.files for c in recipe.data.valid] == [(corpus / "test.source", corpus / "test.target")]
    distil(tmp_path / "e", "--keep-original").refused("--keep-original: given without --target")
    distil(tmp_path / "e", "--target", target).refused("--target: given without --keep-original")


def test_the_student_ends_beside_its_teacher(regard, distil, model, corpus, tmp_path):
    given = ("--source", corpus / "test.source", "--target", corpus / "test.target")
    valid = ("--valid-source", given[1], "--valid-target", given[3])
    ended = distil(tmp_path / "d", *valid, "--beam", 2)
    first, *lines = ended.out.splitlines()
    assert (ended.code, first.split()[-2:]) == (0, ["BLEU", "words/s"])

    def score(path, *options):
        return json.loads(regard("evaluate", path, *given, "--json", *options).out)["bleu"]["score"]

    student = tmp_path / "d" / "student"
    beam = read_recipe(student).decoding.beam
    expected = {
        "teacher, beam 2": score(model, "--beam", 2),
        f"student, beam {beam}": score(student),
        "student, beam 1": score(student, "--beam", 1),
    }
    noted = json.loads((tmp_path / "d" / "distil.json").read_bytes())["standings"]
    assert {one["name"]: one["bleu"] for one in noted} == {name: round(one, 2) for name, one in expected.items()}
    assert [line.split("  ")[0] for line in lines] == list(expected)
    distil(tmp_path / "d", *valid, "--beam", 2).refused("trained already")


def test_stopped_while_it_is_measured_it_is_measured_by_the_same_command(distil, corpus, tmp_path, monkeypatch):
    valid = ("--valid-source", corpus / "test.source", "--valid-target", corpus / "test.target")

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("regard.commands.distil.standing", stopped)
        assert distil(tmp_path / "d", *valid).code == 130
    learned = weights(tmp_path / "d")
    distil(tmp_path / "d", *valid, "--seed", 9).refused("began with another --seed")
    ended = distil(tmp_path / "d", *valid)
    assert (ended.code, len(ended.out.splitlines())) == (0, 4)
    assert weights(tmp_path / "d") == learned


def test_a_model_of_the_other_direction_makes_up_sources_for_the_target(distil, model, corpus, texts, tmp_path):
    from regard.engine import load

    out, target = tmp_path / "d", texts / "target"
    valid = ("--valid-source", corpus / "test.source", "--valid-target", corpus / "test.target")
    original = ("--target", target, "--keep-original", *valid)
    assert distil(out, *original, "--back", model).code == 0
    assert read(out / "back.txt") == load(model).write(read(target))
    learned = [(c.source, c.target) for c in read_recipe(out / "student").data.corpora]
    source = texts / "source"
    assert learned == [(source, out / "teacher.txt"), (source, target), (out / "back.txt", target)]
    (out / "student" / "manifest.json").unlink()
    distil(out, *original).refused("another back")
    distil(tmp_path / "e", "--back", model).refused("--back: given without --target")
    distil(tmp_path / "e", *original, "--back", texts / "none").refused("none", "no such model directory")
    distil(tmp_path / "e", *original[:3], "--back", model).refused("--back: given without --valid-source")
    assert not (tmp_path / "e").exists()


def test_a_student_can_begin_with_the_weights_of_a_model(regard, model, texts, tmp_path):
    still = ("training.learning_rate=1e-12", "training.ema=0", "training.weight_decay=0")
    words = ("--source", texts / "source", "--steps", 1, "--quiet", *(word for s in still for word in ("--set", s)))
    assert regard("distil", model, "--start", model, "--out", tmp_path / "d", *words).code == 0
    before, after = (load_file(path / "model.safetensors") for path in (model, tmp_path / "d" / "student"))
    assert before.keys() == after.keys()
    for name in before:
        torch.testing.assert_close(after[name], before[name])
    asked = ("--start", model, "--preset", "fast", "--out", tmp_path / "e", *words)
    regard("distil", model, *asked).refused("says itself what the student is; leave out --preset")


def test_what_is_translated_is_not_translated_again(distil, said, tmp_path, monkeypatch):
    out = tmp_path / "d"

    def stop(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("regard.commands.resuming.counted", stop)
        patch.setattr("regard.commands.distil.run", stop)
        assert distil(out).code == 130  # after the translation, before the first step
    (out / "teacher.txt").rename(out / ".teacher.txt.part")
    kept = [f"KEPT {i}" for i in range(7)]
    (out / ".teacher.txt.part").write_text("\n".join([*kept, "half a li"]))
    assert distil(out).code == 0
    assert read(out / "teacher.txt") == [*kept, *said[7:]]


def test_an_interrupted_student_goes_on_to_the_same_weights(distil, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    assert distil(tmp_path / "whole").code == 0
    with monkeypatch.context() as patch:
        patch.setattr("regard.run.write_weights", stop)
        assert distil(tmp_path / "d").code == 130
    distil(tmp_path / "d", "--seed", 9).refused("another --seed (None)", "say the same")
    shutil.copyfile(tmp_path / "whole" / "teacher.txt", tmp_path / "d" / "teacher.txt")
    assert distil(tmp_path / "d").code == 0
    assert weights(tmp_path / "d") == weights(tmp_path / "whole")


def test_what_was_begun_with_something_else_is_refused(regard, distil, model, corpus, tmp_path):
    out = tmp_path / "d"
    assert distil(out).code == 0
    (out / "student" / "manifest.json").unlink()
    distil(out, "--beam", 2).refused("another search")
    other = tmp_path / "other"
    shutil.copytree(model, other, ignore=shutil.ignore_patterns("checkpoints"))
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**manifest, "steps": 7}))
    distil(out, teacher=other).refused("another models")
    regard("distil", model, "--source", corpus / "test.source", "--out", out, *STUDENT).refused("another source")
    (out / "distil.json").write_text("{}")
    distil(out).refused("distil.json: damaged")


def test_notes_of_a_text_of_which_no_line_is_made_bind_nobody(distil, tmp_path, monkeypatch):
    out = tmp_path / "d"

    def stop(_model, _search, lines):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("regard.commands.translate.said", stop)
        assert distil(out).code == 130
    assert (out / "distil.json").exists()
    assert distil(out, "--beam", 2).code == 0
    assert json.loads((out / "distil.json").read_bytes())["teacher"]["search"]["beam"] == 2


def test_models_that_cannot_speak_are_refused_before_the_first_line(regard, distil, model, corpus, texts, tmp_path):
    other, out = tmp_path / "other", tmp_path / "d"
    files = ("--source", texts / "source", "--target", texts / "source", "--steps", 1, "--quiet")
    assert regard("train", *files, "--out", other, *options()).code == 0
    distil(out, "--with", other).refused("not the vocabulary", str(model))
    valid = ("--valid-source", corpus / "test.source", "--valid-target", corpus / "test.target")
    original = ("--target", texts / "target", "--keep-original", *valid)
    damaged = tmp_path / "damaged"
    shutil.copytree(model, damaged, ignore=shutil.ignore_patterns("checkpoints"))
    recipe = (damaged / "recipe.yaml").read_text()
    (damaged / "recipe.yaml").write_text(recipe.replace("width: 32", "width: 36"))
    sums = json.loads((damaged / "manifest.json").read_text())
    sums["files"]["recipe.yaml"] = digest(damaged / "recipe.yaml")
    (damaged / "manifest.json").write_text(json.dumps(sums))
    distil(out, *original, "--back", damaged).refused(str(damaged))
    assert not out.exists()
    assert distil(out).code == 0


def test_what_cannot_be_begun_leaves_nothing(regard, distil, model, corpus, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    distil(tmp_path / "mine").refused("mine", "not from distilling")
    regard("distil", model, "--source", tmp_path / "none", "--out", tmp_path / "d").refused("none", "no such file")
    distil(tmp_path / "d", teacher=corpus).refused("manifest.json")
    distil(tmp_path / "d", "--workers", 2, "--with", model).refused("one process")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_lines_beyond_what_training_takes_are_left_blank(regard, model, texts, tmp_path):
    source = tmp_path / "s"
    lines = [*read(texts / "source"), "a" * 2001]
    source.write_text("".join(f"{line}\n" for line in lines))
    assert regard("distil", model, "--source", source, "--out", tmp_path / "d", *STUDENT).code == 0
    found = read(tmp_path / "d" / "teacher.txt")
    assert len(found) == len(lines)
    assert found[-1] == ""
    assert all(found[:-1])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--set", "model.wdth=3"), "did you mean 'width'"),
        (("--budget", "5s"), "keep one"),
        (("--valid-source", "nowhere.en", "--valid-target", "nowhere.de"), "nowhere.en: no such file"),
        (("--set", "text.size=7000"), "text.size: 7000, but the vocabulary of"),
        (("--set", "model.heads=5"), "model.heads: 5 does not divide model.width 32"),
        (("--set", "data.valid_size=40"), "cannot be carved out of"),
    ],
    ids=[
        "a key that is none",
        "two lengths",
        "a file that is not there",
        "another vocabulary",
        "heads that do not divide",
        "more to hold out than there is",
    ],
)
def test_what_the_student_cannot_learn_with_is_said_before_the_teacher_speaks(distil, tmp_path, arguments, reason):
    distil(tmp_path / "d", *arguments).refused(reason)
    assert not (tmp_path / "d").exists()


def test_texts_of_which_one_is_shorter_are_refused_before_the_teacher_speaks(distil, corpus, texts, tmp_path):
    short = tmp_path / "short"
    short.write_text("".join(f"{line}\n" for line in read(texts / "target")[:-1]))
    original = ("--target", short, "--keep-original")
    distil(tmp_path / "d", *original).refused(f"{texts / 'source'} has 40 lines, {short} has 39")
    valid = ("--valid-source", corpus / "test.source", "--valid-target", short)
    distil(tmp_path / "d", *valid).refused(f"{corpus / 'test.source'} has 20 lines, {short} has 39")
    assert not (tmp_path / "d").exists()


def test_a_start_that_the_student_cannot_be_is_refused_before_the_teacher_speaks(regard, model, texts, tmp_path):
    asked = ("--source", texts / "source", "--out", tmp_path / "d", "--steps", 1, "--set", "model.width=64")
    regard("distil", model, "--start", model, *asked).refused("model.width: 64, but the model in", "has 32")
    assert not (tmp_path / "d").exists()


def test_copies_may_be_left_out_of_what_a_student_learns(distil, tmp_path):
    """Nothing is a copy before it is translated."""
    assert distil(tmp_path / "d", "--set", "data.filters.drop_identical=true").code == 0
