"""An image classifier at work: trained on bars that lie or stand, it tells them apart, in whatever form they come."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from bars import SMALL, bars, write_folder, write_idx

from regard.data.images import load_images
from regard.data.options import ImageOptions
from regard.errors import DataError, ModelFormatError, RecipeError
from regard.run import Request, run
from regard.viewer import load_viewer

Image = pytest.importorskip("PIL.Image")
TEST = bars(60, seed=9)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """train.npz, and the test images as an idx file with labels, as an .npz file and as a folder of folders."""
    folder = tmp_path_factory.mktemp("bars")
    images, labels = bars(400)
    np.savez(folder / "train.npz", images=images, labels=labels)
    np.savez(folder / "test.npz", images=TEST[0], labels=TEST[1])
    write_idx(folder / "test-images", TEST[0])
    write_idx(folder / "test-labels", TEST[1])
    write_folder(folder / "test", *TEST)
    return folder


@pytest.fixture(scope="module")
def folder(place):
    run(Request(images=place / "train.npz", out=place / "model", steps=80, settings=SMALL, quiet=True))
    return place / "model"


@pytest.fixture(scope="module")
def viewer(folder):
    return load_viewer(folder)


# ---------------------------------------------------------------- a trained model
def test_it_learns_to_tell_bars_apart(viewer):
    found = [int(seen.label) for seen in viewer.classify(list(TEST[0][:, None]))]
    assert np.mean(found == TEST[1]) > 0.95


def test_files_and_arrays_get_the_answers_of_the_plain_model_in_their_order(place, viewer):
    files = sorted((place / "test").rglob("*.png"), key=lambda path: path.name)
    mean, std = viewer.lexicon.normalisation.mean[0], viewer.lexicon.normalisation.std[0]
    with torch.no_grad():
        logits = viewer.model(torch.from_numpy((TEST[0][:, None].astype(np.float32) / 255 - mean) / std).float())
    for found in (viewer.classify(files), viewer.classify(list(TEST[0][:, None]))):
        for seen, p in zip(found, logits.softmax(-1).tolist(), strict=True):
            assert dict(seen.ranking) == pytest.approx({"0": p[0], "1": p[1]}, rel=1e-4, abs=1e-6)
            assert seen.probability == max(dict(seen.ranking).values())


def test_a_grey_image_in_colours_is_the_same_image(viewer):
    grey = TEST[0][0][None]
    assert viewer.classify([grey]) == viewer.classify([np.repeat(grey, 3, axis=0)])


def test_another_size_is_resized_or_seen_as_it_is(viewer):
    large = TEST[0][0].repeat(2, axis=0).repeat(2, axis=1)[None]
    assert viewer.pixels(large).shape == (1, 8, 12)
    assert viewer.pixels(large, own_size=True).shape == (1, 16, 24)
    own, given = viewer.classify([large], own_size=True)[0], viewer.probabilities(large[None])[0]
    assert own.probability == pytest.approx(float(given.max()))
    mixed = viewer.classify([large, TEST[0][0][None], large], own_size=True)
    assert mixed[0] == mixed[2] != mixed[1]
    assert mixed[1].ranking[0] == pytest.approx(viewer.classify([TEST[0][0][None]])[0].ranking[0])


def test_no_images_have_no_answers(viewer):
    assert viewer.classify([]) == []


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((1, 8, 12)), "found float64"),
        (np.zeros((8, 12), dtype=np.uint8), r"found uint8 \(8, 12\)"),
        (np.zeros((4, 8, 12), dtype=np.uint8), "1 or 3 channels"),
        (np.zeros((1, 0, 12), dtype=np.uint8), "expected uint8"),
    ],
)
def test_an_array_that_is_no_image_is_refused(viewer, image, said):
    with pytest.raises(DataError, match=said):
        viewer.classify([image])


def test_a_size_that_patches_do_not_divide_is_refused_where_it_is_to_be_kept(viewer):
    with pytest.raises(DataError, match="found 8 × 13 pixels, which patches of 4 × 4 do not divide"):
        viewer.classify([np.zeros((1, 8, 13), dtype=np.uint8)], own_size=True)


# ---------------------------------------------------------------- training
def test_every_form_of_the_same_images_makes_the_same_model(tmp_path):
    images, labels = bars(40)
    order = np.argsort(labels, kind="stable")  # as a folder has them
    images, labels = images[order], labels[order]
    np.savez(tmp_path / "all.npz", x=images, y=labels)
    forms = {
        "npz": {"images": tmp_path / "all.npz"},
        "idx": {
            "images": write_idx(tmp_path / "i.gz", images),
            "image_labels": write_idx(tmp_path / "l.gz", labels),
        },
        "folder": {"images": write_folder(tmp_path / "all", images, labels)},
    }
    for name, files in forms.items():
        run(Request(**files, out=tmp_path / name, steps=2, settings=SMALL, quiet=True))
    weights = {(tmp_path / name / "model.safetensors").read_bytes() for name in forms}
    assert len(weights) == 1


def test_a_resumed_run_ends_as_one_that_was_never_interrupted(tmp_path):
    images, labels = bars(60)
    np.savez(tmp_path / "all.npz", images=images, labels=labels)
    settings = (*SMALL, "model.dropout=0.2", "data.images.flip=true", "training.save_every=3")
    whole = Request(images=tmp_path / "all.npz", out=tmp_path / "whole", steps=7, settings=settings, quiet=True)
    run(whole)
    from regard import run as module

    with pytest.MonkeyPatch.context() as patch:
        stops = iter([False] * 4 + [True])
        patch.setattr(module, "stop_on_signal", lambda: Stopping(stops))
        assert run(replace(whole, out=tmp_path / "part")).interrupted
    run(Request(resume=tmp_path / "part", quiet=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "part")]
    assert weights[0] == weights[1]


class Stopping:
    """Stands in for the handler of signals: stops when the iterator says so."""

    def __init__(self, stops):
        self.stops = stops

    def __enter__(self):
        return lambda: next(self.stops)

    def __exit__(self, *_):
        return None


def test_a_run_does_not_go_on_with_other_images(tmp_path, regard):
    images, labels = bars(40)
    np.savez(tmp_path / "all.npz", images=images, labels=labels)
    run(Request(images=tmp_path / "all.npz", out=tmp_path / "m", steps=2, settings=SMALL, quiet=True))
    (tmp_path / "m" / "manifest.json").unlink()
    np.savez(tmp_path / "all.npz", images=255 - images, labels=labels)
    found = regard("train", "--resume", tmp_path / "m", "--quiet")
    assert found.code == 1
    assert "began with another text than" in found.err
    assert "all.npz" in found.err


def test_given_validation_images_are_those_that_are_scored(tmp_path):
    images, labels = bars(30)
    write_idx(tmp_path / "i", images)
    write_idx(tmp_path / "l", labels)
    write_idx(tmp_path / "vi", TEST[0][:7])
    write_idx(tmp_path / "vl", TEST[1][:7])
    files = {"images": "i", "image_labels": "l", "valid_images": "vi", "valid_image_labels": "vl"}
    request = Request(**{name: tmp_path / file for name, file in files.items()}, out=tmp_path / "m", steps=2,
                      settings=SMALL, quiet=True)  # fmt: skip
    run(request)
    assert "## Quality on 7 validation images (given)" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")


def test_the_directory_keeps_what_the_model_reads_and_how_good_it_is(place, folder):
    kept = json.loads((folder / "images.json").read_text(encoding="utf-8"))
    assert (kept["size"], kept["channels"], kept["labels"]) == ([8, 12], 1, ["0", "1"])
    loaded = load_images(ImageOptions(train=place / "train.npz"), None, seed=1)
    assert tuple(kept["normalisation"]["mean"]) == pytest.approx(loaded.normalisation.mean)
    facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["validation"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"accuracy {facts['accuracy']:.2f} %" in card
    assert "regard see model" in card
    assert "2 labels; images of 8 × 12 pixels, grey" in card


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"text": (Path("x"),)}, "--images: images teach an image classifier; leave out --text"),
        ({"preset": "gnmt"}, "leave out --preset"),
        ({"settings": ("model.kind=gpt",)}, "model.kind: gpt cannot classify-images; use vit"),
        ({"settings": ("model.patch=5",)}, r"model.patch: 5 does not divide images of 8 × 12 pixels; try 1, 2, 4"),
        ({"settings": ("data.images.size=[9, 9]", "model.patch=4")}, "model.patch: 4 does not divide images of 9 × 9"),
        ({"settings": ("data.images.size=[29, 31]",)}, "no square patch makes 4 to 256 equal parts"),
        ({"settings": ("data.images.shft=1",)}, "did you mean 'shift'"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_line(place, tmp_path, options, said):
    with pytest.raises(RecipeError, match=said) as caught:
        run(Request(images=place / "train.npz", out=tmp_path / "model", quiet=True, **options))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("image_labels", "--image-labels: given without --images"),
        ("valid_images", "--valid-images: given without --images"),
        ("valid_image_labels", "--valid-image-labels: given without --valid-images"),
    ],
)
def test_options_that_need_another_say_so(tmp_path, given, said):
    with pytest.raises(RecipeError, match=said):
        run(Request(out=tmp_path / "m", quiet=True, **{given: tmp_path / "x"}))


def test_an_empty_folder_and_a_broken_image_are_named_before_anything_is_written(tmp_path, regard):
    (tmp_path / "none").mkdir()
    broken = write_folder(tmp_path / "broken", *bars(6))
    victim = sorted(broken.rglob("*.png"))[-1]
    victim.write_bytes(victim.read_bytes()[:40])
    for source, said in (("none", "found no folder in it"), ("broken", f"{victim.name}: not an image")):
        found = regard("train", "--images", tmp_path / source, "--out", tmp_path / "m", "--quiet")
        assert (found.code, found.err.count("\n")) == (1, 1)
        assert said in found.err
    assert not (tmp_path / "m").exists()


# ---------------------------------------------------------------- the command
def test_each_image_is_a_line_with_its_likeliest_labels(place, folder, viewer, regard):
    files = sorted((place / "test" / "1").glob("*.png"))[:2]
    seen = viewer.classify(files)
    found = regard("see", folder, *files, "--top", "1")
    assert found.out == "".join(f"{f}\t{s.label} {s.probability:.4f}\n" for f, s in zip(files, seen, strict=True))
    listed = regard("see", folder, place / "test" / "1", "--json").out.splitlines()
    assert len(listed) == int((TEST[1] == 1).sum())
    first = json.loads(listed[0])
    assert (first["image"], first["label"]) == (str(files[0]), seen[0].label)
    assert first["probabilities"] == pytest.approx(dict(seen[0].ranking), rel=1e-4)


def test_an_idx_file_without_labels_is_a_line_an_image(place, folder, viewer, regard):
    lines = regard("see", folder, place / "test-images").out.splitlines()
    assert len(lines) == 60
    assert [line.split("\t")[1].split()[0] for line in lines] == [
        seen.label for seen in viewer.classify(list(TEST[0][:, None]))
    ]
    assert lines[7].startswith(f"{place / 'test-images'}[7]\t")


@pytest.mark.parametrize("form", [("test-images", "--labels", "test-labels"), ("test.npz",), ("test",)])
def test_whatever_has_labels_is_scored_alike(place, folder, viewer, regard, form):
    paths = [part if part.startswith("--") else place / part for part in form]
    found = json.loads(regard("see", folder, *paths, "--json").out)
    predicted = np.array([int(seen.label) for seen in viewer.classify(list(TEST[0][:, None]))])
    assert found["accuracy"] == pytest.approx(100 * np.mean(predicted == TEST[1]))
    assert found["labels"] == ["0", "1"]
    expected = [[int(((TEST[1] == a) & (predicted == p)).sum()) for p in (0, 1)] for a in (0, 1)]
    assert found["confusion"] == expected
    text = regard("see", folder, *paths).out.splitlines()
    assert text[0].startswith(f"accuracy {found['accuracy']:.2f} %  macro F1 {found['macro_f1']:.2f}  images 60")
    for name, row, line in zip(("0", "1"), expected, text[3:], strict=True):
        assert line.split() == [name, *(str(count) if count else "·" for count in row)]


def test_a_picture_of_where_it_looks_has_a_panel_for_each_head(place, folder, regard, tmp_path):
    image = next((place / "test" / "0").glob("*.png"))
    assert regard("see", folder, image, "--svg", tmp_path / "map.svg").code == 0
    root = ElementTree.fromstring((tmp_path / "map.svg").read_text(encoding="utf-8"))
    captions = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert captions[0].startswith("seen: ")
    assert [caption.split(":")[0] for caption in captions[1:]] == ["head 1", "head 2"]


def test_bad_input_of_the_command_is_one_line(place, folder, model, regard, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.png").write_bytes(b"no image")
    np.savez(tmp_path / "other.npz", images=TEST[0], labels=TEST[1] + 7)
    np.savez(tmp_path / "nolabels.npz", images=TEST[0])
    image = next((place / "test" / "0").glob("*.png"))
    cases = [
        ((folder, tmp_path / "nowhere.png"), "nowhere.png: no such image"),
        ((folder, tmp_path / "empty"), "empty: found no image in it"),
        ((folder, tmp_path / "broken.png"), "broken.png: not an image that can be read"),
        ((folder, place / "test-labels"), "expected 00 00 08 03: an idx file of images"),
        ((folder, tmp_path / "other.npz"), "found label"),
        ((folder, tmp_path / "nolabels.npz"), "expected arrays 'images' and 'labels'"),
        ((folder, place / "test", image), "give it alone"),
        ((folder, place / "test", "--svg", tmp_path / "x.svg"), "give it alone"),
        ((folder, place / "test" / "0", "--svg", tmp_path / "x.svg"), "--map attention: explains one image, found"),
        ((folder, image, "--svg", tmp_path / "x.jpg"), "let its name end in .svg"),
        ((model, image), "task translate, expected one of the task classify-images; use it with regard translate"),
    ]
    for arguments, said in cases:
        found = regard("see", *arguments)
        assert (found.code, found.out, found.err.count("\n")) == (1, "", 1), arguments
        assert said in found.err
    found = regard("translate", folder, stdin=b"x\n")
    assert "use it with regard see" in found.err
    assert not list(tmp_path.glob("x.*"))


def test_a_model_without_its_labels_is_refused(folder, tmp_path):
    import shutil

    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "images.json").unlink()
    with pytest.raises(ModelFormatError, match=r"images.json"):
        load_viewer(copy)


def test_many_labels_are_told_by_their_commonest_mistakes():
    from regard.commands.confusion import confusion_lines

    counts = np.diag(np.arange(1, 15))
    counts[3, 5], counts[2, 0] = 4, 9
    names = [f"n{i}" for i in range(14)]
    assert confusion_lines(counts, names) == ["n2 taken for n0: 9", "n3 taken for n5: 4"]
