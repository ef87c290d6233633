"""`regard see --map` on a model that tells bars apart: every map, its numbers, and whether it can be believed."""

import json
from statistics import fmean
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from bars import SMALL, bars, write_idx

from regard.explaining.image_map_png import map_png
from regard.explaining.rise import Stop
from regard.run import Request, run
from regard.viewer import load_viewer

IMAGES = bars(16, seed=9)[0]
PIXELS = IMAGES[3][None]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("maps")
    images, labels = bars(400)
    np.savez(place / "train.npz", images=images, labels=labels)
    run(Request(images=place / "train.npz", out=place / "model", steps=80, settings=SMALL, quiet=True))
    return place / "model"


@pytest.fixture(scope="module")
def viewer(folder):
    return load_viewer(folder)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """One image, as an idx file: that needs no library."""
    return write_idx(tmp_path_factory.mktemp("image") / "one", PIXELS)


@pytest.fixture
def see(regard, folder, image):
    """see("--map", "rise", …): the object that the command prints as JSON."""

    def run(*arguments):
        ended = regard("see", folder, image, "--json", *arguments)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    return run


# ---------------------------------------------------------------- the library
def test_an_image_that_is_shown_is_itself_and_one_that_is_hidden_is_the_mean(viewer):
    score = viewer.through(PIXELS, torch.zeros_like)
    shown, hidden = score(torch.tensor([[1.0], [0.0]]).expand(2, 96))[:, 0].tolist()
    label = viewer.likeliest(PIXELS)
    assert shown == pytest.approx(viewer.classify([PIXELS])[0].probability, rel=1e-4)
    with torch.no_grad():
        mean = viewer.model(torch.zeros(1, 1, 8, 12)).softmax(-1)[0, label]
    assert hidden == pytest.approx(float(mean), rel=1e-4)


def test_rise_says_more_of_the_label_than_chance_does(viewer):
    """Over sixteen images: what it calls important takes p down faster, and brings it up faster."""
    own, chance = [], []
    for number, pixels in enumerate(IMAGES[:, None]):
        *_, found = viewer.rise(pixels, Stop(most=800), torch.Generator().manual_seed(number))
        own.append(viewer.faithfulness(pixels, found.values[:, 0].reshape(8, 12)))
        random = torch.rand(2, 3, generator=torch.Generator().manual_seed(number))
        chance.append(viewer.faithfulness(pixels, random))
    assert fmean(one.deletion for one in own) < fmean(one.deletion for one in chance)
    assert fmean(one.insertion for one in own) > fmean(one.insertion for one in chance)


def test_a_map_turned_round_is_as_unfaithful_as_it_was_faithful(viewer):
    *_, found = viewer.rise(PIXELS, Stop(most=800), torch.Generator().manual_seed(1))
    values = found.values[:, 0].reshape(8, 12)
    own, turned = viewer.faithfulness(PIXELS, values), viewer.faithfulness(PIXELS, -values)
    assert own.deletion < turned.deletion
    assert own.insertion > turned.insertion


def test_an_image_in_its_own_size_has_its_own_map(viewer):
    large = PIXELS.repeat(2, axis=1).repeat(2, axis=2)
    assert viewer.attention(large).shape == (2, 2, 4, 6)
    assert viewer.rollout(large).shape == viewer.gradient(large).shape == (4, 6)
    assert 0 < viewer.faithfulness(large, viewer.rollout(large)).deletion < 1


# ---------------------------------------------------------------- numbers
def test_attention_is_that_of_the_layer_and_the_head_that_are_asked_for(viewer, see):
    weights = viewer.attention(PIXELS)
    last, first, one = (see("--map", "attention", *wish) for wish in ((), ("--layer", 1), ("--layer", 1, "--head", 2)))
    assert (last["map"]["method"], last["map"]["layer"], first["map"]["layer"]) == ("attention", 2, 1)
    torch.testing.assert_close(torch.tensor(last["map"]["heads"]), weights[1])
    torch.testing.assert_close(torch.tensor(last["map"]["matrix"]), weights[1].mean(0))
    torch.testing.assert_close(torch.tensor(first["map"]["matrix"]), weights[0].mean(0))
    torch.testing.assert_close(torch.tensor(one["map"]["matrix"]), weights[0, 1])
    assert one["map"]["head"] == 2
    assert "heads" not in one["map"]
    assert one["label"] == viewer.classify([PIXELS])[0].label


@pytest.mark.parametrize("method", ["rollout", "gradient"])
def test_maps_of_all_layers_are_those_of_the_library(viewer, see, method):
    found = see("--map", method)
    assert found["map"].keys() == {"method", "matrix"}
    assert found["map"]["method"] == method
    torch.testing.assert_close(torch.tensor(found["map"]["matrix"]), getattr(viewer, method)(PIXELS))


def test_rise_has_a_number_and_an_error_for_each_pixel_and_is_the_same_again(viewer, see):
    found, again = (see("--map", "rise", "--masks", 300)["map"] for _ in range(2))
    assert found == again
    *_, own = viewer.rise(PIXELS, Stop(most=300), torch.Generator().manual_seed(1))
    for name, expected in (("matrix", own.values), ("standard_errors", own.errors)):
        torch.testing.assert_close(torch.tensor(found[name]).double(), expected.reshape(8, 12), rtol=1e-4, atol=1e-6)
    assert 200 <= found["masks"] == own.masks <= 300
    assert found["converged"] == (own.uncertainty <= 0.05)


def test_rise_tells_on_stderr_how_far_it_came_and_stdout_stays_clean(regard, folder, image):
    ended = regard("see", folder, image, "--map", "rise", "--masks", 50, "--json")
    assert ended.err.splitlines()[-1].startswith("rise: 50 of at most 50 masks, largest standard error ")
    assert "more --masks" in ended.err
    assert len(ended.out.splitlines()) == 1


def test_a_place_of_which_nothing_is_known_has_no_error_in_json():
    from regard.commands.map_image import finite

    assert finite(torch.tensor([[0.5, torch.inf]])) == [[0.5, None]]


def test_faithfulness_stands_beside_that_of_chance(viewer, see, regard, folder, image):
    found = see("--map", "rollout", "--faithful")["faithfulness"]
    own = viewer.faithfulness(PIXELS, viewer.rollout(PIXELS))
    assert found["deletion"] == pytest.approx(own.deletion, rel=1e-4)
    assert found["insertion"] == pytest.approx(own.insertion, rel=1e-4)
    generator = torch.Generator().manual_seed(1)
    chance = [viewer.faithfulness(PIXELS, torch.rand(2, 3, generator=generator)) for _ in range(4)]
    assert found["random"]["deletion"] == pytest.approx(fmean(one.deletion for one in chance), rel=1e-4)
    assert found["random"]["insertion"] == pytest.approx(fmean(one.insertion for one in chance), rel=1e-4)
    lines = regard("see", folder, image, "--map", "rollout", "--faithful").out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith(f"rollout: deletion {own.deletion:.4f} (random {found['random']['deletion']:.4f}, lower")
    assert "faithfulness" not in see("--map", "rollout")


# ---------------------------------------------------------------- pictures
@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ((), ["head 1", "head 2"]),
        (("--layer", 1), ["head 1", "head 2"]),
        (("--layer", 1, "--head", 2), ["layer 1, head 2"]),
        (("--map", "rollout"), ["rollout"]),
        (("--map", "gradient"), ["gradient"]),
        (("--map", "rise", "--masks", 200), ["rise"]),
    ],
)
def test_every_map_can_be_drawn_over_the_image(regard, folder, image, tmp_path, wishes, expected):
    assert regard("see", folder, image, "--svg", tmp_path / "map.svg", *wishes).code == 0
    root = ElementTree.fromstring((tmp_path / "map.svg").read_text(encoding="utf-8"))
    captions = [element.text for element in root.iter(f"{SVG}text")]
    assert captions[0].startswith("seen: ")
    assert [caption.split(":")[0] for caption in captions[1:]] == expected
    assert all(list(group.iter(f"{SVG}path")) for group in list(root)[1:])  # something is covered


def test_a_png_file_is_the_same_picture(regard, folder, image, viewer, tmp_path):
    pytest.importorskip("PIL")
    assert regard("see", folder, image, "--map", "rollout", "--png", tmp_path / "map.png").code == 0
    title, rollout = f"seen: {viewer.classify([PIXELS])[0].label}", viewer.rollout(PIXELS)
    assert (tmp_path / "map.png").read_bytes() == map_png(PIXELS, {"rollout": rollout}, title)
    ended = regard("see", folder, image, "--map", "rollout", "--png", "map.jpg")
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert "--png map.jpg: the picture is a file of PNG; let its name end in .png" in ended.err


# ---------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        (("--map", "attention", "--layer", 3), "--layer 3: the model has layers 1 to 2; choose one of them"),
        (("--map", "attention", "--layer", 0), "--layer 0: the model has layers 1 to 2"),
        (("--head", 9), "--head 9: the model has heads 1 to 2"),
        (("--map", "rollout", "--layer", 1), "--layer 1: rollout is a map of all layers and heads"),
        (("--map", "rise", "--head", 1), "--head 1: rise is a map of all layers and heads"),
        (("--map", "gradient", "--masks", 100), "--masks 100: gradient asks no masks; use it with --map rise"),
    ],
)
def test_what_cannot_be_mapped_is_one_line(regard, folder, image, wishes, said):
    ended = regard("see", folder, image, "--json", *wishes)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert said in ended.err


def test_a_map_needs_somewhere_to_go(regard, folder, image):
    ended = regard("see", folder, image, "--map", "rollout")
    assert (ended.code, ended.out) == (1, "")
    assert (
        "--map rollout: nothing to write it to; add --svg FILE.svg, --png FILE.png, --json or --faithful" in ended.err
    )


@pytest.mark.parametrize("wish", [("--map", "grad-cam"), ("--masks", 1)])
def test_what_the_options_do_not_know_is_a_usage_error(regard, folder, image, wish):
    assert regard("see", folder, image, *wish).code == 2
