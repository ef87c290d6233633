"""Training on: a run begins with exactly what another model of its kind learned, and cannot ask for another model."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from bars import SMALL, bars
from safetensors.torch import save_file
from toy_texts import records, sentences, write_records
from toy_trees import toy_trees

from regard.errors import DataError, ModelFormatError, RecipeError
from regard.evaluation.trees import write_tree
from regard.files import check_manifest, write_manifest
from regard.jobs.table import job
from regard.recipe.folder import WEIGHTS, read_recipe
from regard.run import Request, begin, foreseen, reopen, run, settled
from regard.training.tensors import read_tensors, weights
from regard.viewer import Viewer, load_viewer

LAYERS = ("model.width=16", "model.heads=2", "model.feedforward=32", "model.encoder_layers=1", "model.decoder_layers=1")
ONE_LAYER = ("model.width=16", "model.heads=2", "model.feedforward=32", "model.layers=1")
QUICK = ("data.batch_tokens=300", "training.threads=1", "training.saves=1", "training.validations=1")
WORDS = ("text.kind=characters", "decoding.cap=40", "decoding.beam=1")
STILL = (*QUICK, "training.learning_rate=1e-12")  # so that one step changes nothing


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Something to learn from for each task."""
    place = tmp_path_factory.mktemp("start")
    lines = sentences(60, seed=1)
    (place / "text.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (place / "upper.txt").write_text("".join(f"{line.upper()}\n" for line in lines), encoding="utf-8")
    (place / "trees").write_text("".join(f"{write_tree(tree)}\n" for tree in toy_trees(40, seed=1)), encoding="utf-8")
    write_records(place / "records.tsv", records(60, 1))
    images, labels = bars(40)
    np.savez(place / "bars.npz", images=images, labels=labels)
    return place


@pytest.fixture(scope="module")
def requests(place):
    """What teaches a small model of each kind."""
    text = {"text": (place / "text.txt",), "settings": (*ONE_LAYER, *QUICK, *WORDS, "task.context=16")}
    pairs = {"source": place / "text.txt", "target": place / "upper.txt"}
    cells = ("model.kind=recurrent", "model.width=16", "model.embedding=16")
    files = {
        "translate": {**pairs, "settings": (*LAYERS, *QUICK, *WORDS)},
        "recurrent": {**pairs, "settings": (*cells, *QUICK, *WORDS)},
        "language-model": text,
        "masked": {**text, "masked": True},
        "classify": {"labelled": place / "records.tsv", "settings": (*ONE_LAYER, *QUICK, *WORDS)},
        "classify-images": {"images": place / "bars.npz", "settings": (*SMALL, *QUICK)},
        "parse": {"trees": (place / "trees",), "settings": (*LAYERS, *QUICK, *WORDS, "decoding.cap=90")},
    }
    return {name: Request(**given, steps=1, quiet=True) for name, given in files.items()}


@pytest.fixture(scope="module")
def models(requests, tmp_path_factory):
    """A finished model of each kind, made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("starts"), {}

    def model(name):
        if name not in made:
            made[name] = run(replace(requests[name], out=folder / name)).folder
        return made[name]

    return model


KINDS = ["translate", "recurrent", "language-model", "masked", "classify", "classify-images", "parse"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_moves_nothing_ends_with_the_weights_of_its_start(requests, models, tmp_path, kind):
    """Only the start says what the model is, and what its words are."""
    start = models(kind)
    again = replace(requests[kind], start=start, settings=STILL, seed=7, out=tmp_path / "again")
    run(again)
    found, expected = (read_tensors(folder / WEIGHTS) for folder in (tmp_path / "again", start))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-6, msg=name)
    before, after = (read_recipe(folder) for folder in (start, tmp_path / "again"))
    assert after.task == before.task
    assert after.text == before.text
    assert after.model.model_dump(exclude={"dropout"}) == before.model.model_dump(exclude={"dropout"})
    for path in [*start.glob("shared.*"), *start.glob("source.*"), *start.glob("target.*")]:
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    note = json.loads((tmp_path / "again" / "data.json").read_text(encoding="utf-8"))["start"]
    assert note == {"model": str(start), "weights": check_manifest(start)["files"][WEIGHTS]}


@pytest.mark.parametrize("kind", ["language-model", "classify-images"])
def test_a_run_killed_before_its_first_checkpoint_begins_with_them_again(requests, models, tmp_path, kind):
    folder, prepared = begin(replace(requests[kind], start=models(kind), settings=STILL, out=tmp_path / "m"))
    for name, tensor in weights(reopen(folder)[1].model).items():
        assert torch.equal(tensor, weights(prepared.model)[name]), name


# ---------------------------------------------------------------- classes
def of_start(name, start, prepared):
    """The same tensor of both models."""
    return read_tensors(start / WEIGHTS)[name], weights(prepared.model)[name]


def test_the_rows_of_the_same_classes_keep_their_meaning(requests, models, tmp_path):
    """The start has them in another order, as a published model may."""
    start, path = models("classify"), tmp_path / "turned"
    turn_classes(start, path)
    _, prepared = begin(replace(requests["classify"], start=path, settings=STILL, out=tmp_path / "m"))
    for name in ("output.weight", "output.bias"):
        theirs, ours = of_start(name, start, prepared)
        assert torch.equal(ours, theirs)
        assert not torch.equal(*of_start(name, path, prepared))
    assert prepared.lexicon.labels.names == ("tier", "werkzeug")


def turn_classes(start, path):
    """A copy of a classifier of two classes with the second one first."""
    shutil.copytree(start, path)
    tensors = read_tensors(path / WEIGHTS)
    save_file({n: x.flip(0).contiguous() if n.startswith("output.") else x for n, x in tensors.items()}, path / WEIGHTS)
    labels = json.loads((path / "labels.json").read_text(encoding="utf-8"))
    (path / "labels.json").write_text(json.dumps(labels | {"labels": labels["labels"][::-1]}), encoding="utf-8")
    write_manifest(path, {})


def test_a_classifier_of_pairs_begins_with_the_encoder_of_a_masked_model(requests, models, tmp_path):
    start, rows = models("masked"), [(text, text[::-1], label) for text, label in records(60, 3)]
    file = write_records(tmp_path / "pairs.tsv", rows, ("one", "other", "label"))
    columns = {"text_column": "one", "second_column": "other", "label_column": "label"}
    _, prepared = begin(Request(labelled=file, **columns, start=start, settings=STILL, out=tmp_path / "m", quiet=True))
    shared = [name for name in weights(prepared.model) if name.startswith("encoder.")]
    assert len(shared) > 5
    assert all(torch.equal(*of_start(name, start, prepared)) for name in shared)


def test_other_classes_get_an_output_layer_of_their_own(requests, models, tmp_path):
    start = models("classify")
    rows = [(text, f"{label}{len(text) % 2}") for text, label in records(60, 2)]
    other = replace(requests["classify"], labelled=write_records(tmp_path / "other.tsv", rows))
    _, prepared = begin(replace(other, start=start, settings=STILL, out=tmp_path / "m"))
    assert weights(prepared.model)["output.weight"].shape == (4, 16)
    kept = [name for name in read_tensors(start / WEIGHTS) if not name.startswith("output.")]
    assert "pooler.dense.weight" in kept
    for name in kept:
        assert torch.equal(*of_start(name, start, prepared)), name


# ---------------------------------------------------------------- images
def test_images_of_another_size_are_seen_as_the_start_sees_them(requests, models, tmp_path):
    """Positions are stretched once, and pixels become numbers as they did."""
    start = models("classify-images")
    request = replace(requests["classify-images"], start=start, out=tmp_path / "m")
    _, prepared = begin(replace(request, settings=(*STILL, "data.images.size=[16,20]")))
    images = [image[None] for image in bars(5, seed=3, size=(16, 20))[0]]
    found = Viewer(prepared.lexicon, prepared.model).classify(images)
    for one, other in zip(found, load_viewer(start).classify(images, own_size=True), strict=True):
        assert dict(one.ranking) == pytest.approx(dict(other.ranking), abs=1e-5)
    assert prepared.lexicon.normalisation == load_viewer(start).lexicon.normalisation
    assert prepared.lexicon.size == (16, 20)


def test_images_are_brought_to_the_size_and_the_colours_of_the_start(requests, models, tmp_path):
    images, labels = bars(20, size=(10, 10))
    np.savez(tmp_path / "other.npz", images=np.repeat(images[..., None], 3, -1), labels=[f"n{x}" for x in labels])
    request = replace(requests["classify-images"], images=tmp_path / "other.npz", start=models("classify-images"))
    _, prepared = begin(replace(request, settings=STILL, out=tmp_path / "m"))
    assert (prepared.lexicon.size, prepared.lexicon.channels) == ((8, 12), 1)
    assert prepared.lexicon.labels == ("n0", "n1")


# ---------------------------------------------------------------- the learning rate
def test_a_start_is_taught_with_a_fifth_of_the_rate_that_is_chosen_for_random_weights(
    requests, models, place, tmp_path
):
    request = replace(requests["translate"], settings=())
    fresh, gentle = (
        begin(replace(request, start=start, out=tmp_path / name))[1].recipe.training
        for name, start in (("new", None), ("started", models("translate")))
    )
    assert gentle.learning_rate == pytest.approx(fresh.learning_rate / 5)
    assert (fresh.rest_rate, gentle.rest_rate) == (3, 1)  # the lead of tables of words is for the first epochs
    asked = replace(request, settings=("training.learning_rate=0.02",), start=models("translate"))
    assert begin(replace(asked, out=tmp_path / "asked"))[1].recipe.training.learning_rate == 0.02
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("training: {learning_rate: 0.004}\n", encoding="utf-8")
    told = replace(request, recipe=recipe, start=models("translate"), out=tmp_path / "told")
    assert begin(told)[1].recipe.training.learning_rate == 0.004


def test_a_start_is_no_smaller_where_there_is_little_time(requests, models, place, tmp_path):
    """A short run of a fresh model is one of a smaller model, which bears a higher rate."""
    many = tmp_path / "many.tsv"
    many.write_text("".join(f"ab {i}\tAB {i}\n" for i in range(120_000)), encoding="utf-8")
    request = replace(requests["translate"], source=None, target=None, tsv=many, settings=(), steps=None, budget="1m")
    loaded = {}
    for start in (None, models("translate")):
        asked = replace(request, start=start)
        recipe = foreseen(asked)
        loaded[start is None] = settled(asked, recipe, job(recipe).load(recipe))
    fresh, started = loaded[True], loaded[False]
    assert (fresh.training.learning_rate, fresh.data.batch_tokens) == (0.006, 2000)
    assert (started.training.learning_rate, started.data.batch_tokens) == (0.004 / 5, 3000)
    assert started.training.budget == 60


def test_dropout_and_search_are_free(requests, models, tmp_path):
    settings = (*STILL, "model.dropout=0.4", "model.attention_dropout=0.1", "decoding.beam=3", "text.dropout=0.1")
    _, prepared = begin(
        replace(requests["translate"], start=models("translate"), settings=settings, out=tmp_path / "m")
    )
    recipe = prepared.recipe
    assert (recipe.model.dropout, recipe.model.attention_dropout, recipe.text.dropout) == (0.4, 0.1, 0.1)
    assert (recipe.decoding.beam, recipe.decoding.cap) == (3, 40)  # what is not said is as the start has it


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("kind", "start", "expected"),
    [
        ("translate", "language-model", "task language-model, expected one of the task translate"),
        ("translate", "parse", "task parse, expected one of the task translate"),
        ("language-model", "translate", "task translate, expected one of the task language-model"),
        ("masked", "classify-images", "task classify-images, expected one of the task masked or classify"),
        ("classify", "translate", "task translate, expected one of the task masked or classify"),
        ("classify-images", "classify", "task classify, expected one of the task classify-images"),
        ("parse", "translate", "task translate, expected one of the task parse to begin with"),
    ],
)
def test_a_start_of_another_kind_is_refused(requests, models, tmp_path, kind, start, expected):
    with pytest.raises(ModelFormatError, match=expected):
        run(replace(requests[kind], start=models(start), settings=STILL, out=tmp_path / "m"))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("kind", "setting", "said"),
    [
        ("translate", "model.width=32", "model.width: 32, but the model in .* has 16; leave it out, or start from an"),
        ("translate", "model.kind=recurrent", "model.kind: recurrent, but the model in .* has transformer"),
        ("translate", "model.tie_output=false", "model.tie_output: False, but the model in .* has True"),
        ("translate", "text.kind=bytes", "text.kind: bytes, but the vocabulary of .* has characters"),
        ("language-model", "task.start=eos", "task.start: eos, but the model in .* has bos"),
        ("masked", "model.output_bias=false", "model.output_bias: False, but the model in .* has True"),
        ("classify-images", "model.patch=2", "model.patch: 2, but the model in .* has 4"),
        ("classify-images", "data.images.channels=3", "data.images.channels: 3, but the model in .* has 1"),
        ("classify-images", "data.images.size=[9,12]", "model.patch: 4 does not divide images of 9 × 12 pixels"),
    ],
)
def test_a_recipe_that_contradicts_its_start_is_refused_by_name(requests, models, tmp_path, kind, setting, said):
    request = replace(requests[kind], start=models(kind), settings=(*STILL, setting), out=tmp_path / "m")
    with pytest.raises(RecipeError, match=said):
        run(request)
    assert not (tmp_path / "m").exists()


def test_a_recipe_file_that_contradicts_its_start_is_refused_too(requests, models, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("text: {size: 99}\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"text.size: 99, but the vocabulary of .* leave out one of the two"):
        run(
            replace(requests["translate"], recipe=recipe, start=models("translate"), settings=STILL, out=tmp_path / "m")
        )


def test_brackets_that_a_parser_never_learned_are_refused(requests, models, place, tmp_path):
    (tmp_path / "trees").write_text("(TOP (QP (CD two) (NN dogs)))\n", encoding="utf-8")
    files = {"trees": (tmp_path / "trees",), "valid_trees": (place / "trees",)}
    request = replace(requests["parse"], **files, start=models("parse"), settings=STILL)
    with pytest.raises(DataError, match=r"trees: found the bracket '\(QP', which the vocabulary of the other model"):
        run(replace(request, out=tmp_path / "m"))


def test_a_start_that_is_not_there_or_not_finished_is_refused(requests, models, regard, place, tmp_path):
    files = ("--text", place / "text.txt", "--out", tmp_path / "m")
    regard("train", *files, "--start", tmp_path / "none").refused("none: no such model directory")
    unfinished, _ = begin(replace(requests["language-model"], out=tmp_path / "begun"))
    regard("train", *files, "--start", unfinished).refused("this training is not finished")
    regard("train", *files, "--start", models("language-model"), "--vocabulary", place).refused(
        "brings its model and its vocabulary; leave out --vocabulary"
    )
