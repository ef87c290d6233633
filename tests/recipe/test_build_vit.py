"""From options and images to a ViT: what does not go together is refused, and sizes for who chose none are possible."""

import json
from math import gcd
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from regard.data.image_lexicon import IMAGES, ImageLexicon, read_image_lexicon
from regard.data.pixels import Normalisation
from regard.errors import ModelFormatError, RecipeError
from regard.jobs.table import job
from regard.models.interface import parameters
from regard.recipe.build import build
from regard.recipe.build_vit import build_vit
from regard.recipe.image_presets import choose_image_classifier, choose_patch
from regard.recipe.models import VitOptions
from regard.recipe.recipe import overlay, parse, read_tree
from regard.training.muon import hidden_matrices

GREYS = Normalisation(mean=(0.25,), std=(0.5,))
LEXICON = ImageLexicon(size=(6, 9), channels=1, normalisation=GREYS, labels=("cat", "dög", "3"))
SMALL = {"width": 8, "heads": 2, "feedforward": 12, "layers": 2, "patch": 3}


def test_the_parameters_are_those_of_the_formula():
    width, inner, layers, patches, classes = 8, 12, 2, 2 * 3, 3
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    entrance = 9 * width + width + width + (1 + patches) * width
    expected = entrance + layers * layer + 2 * width + classes * width + classes
    assert parameters(build_vit(VitOptions(**SMALL), LEXICON, seed=1)) == expected


def test_first_weights_are_a_function_of_the_seed_alone():
    first, again, other = (build_vit(VitOptions(**SMALL), LEXICON, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["output.weight"], other["output.weight"])


def test_muon_leaves_the_table_of_positions_to_adam():
    model = build_vit(VitOptions(**SMALL), LEXICON, seed=1)
    names = {id(p): name for name, p in model.named_parameters()}
    chosen = {names[id(p)] for p in hidden_matrices(model)}
    assert "encoder.layers.0.attention.packed.weight" in chosen
    assert "encoder.entrance.positions.table" not in chosen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"patch": 4}, r"model.patch: 4 does not divide images of 6 × 9 pixels; try 1, 3, or set data.images.size"),
        ({"heads": 3}, "model.heads: 3 does not divide model.width 8"),
        ({"attention": "window"}, "model.attention: window would hide"),
        ({"attention": "linear", "attention_dropout": 0.1}, "model.attention_dropout: 0.1"),
    ],
)
def test_what_does_not_go_together_is_refused(change, said):
    with pytest.raises(RecipeError, match=said):
        build_vit(VitOptions(**(SMALL | change)), LEXICON, seed=1)


def test_a_model_of_images_is_no_model_of_tokens():
    with pytest.raises(RecipeError, match="vit reads and does not write"):
        build(VitOptions(), 9, 9, shared=True, seed=1)


# ---------------------------------------------------------------- what it reads and answers
def test_what_was_saved_is_read_again(tmp_path):
    LEXICON.save(tmp_path)
    assert read_image_lexicon(tmp_path) == LEXICON


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": [6]}, "size"),
        ({"channels": 2}, "channels: Input should be 1 or 3"),
        ({"channels": 3}, "normalisation has 1 channels, the images 3"),
        ({"labels": ["one"]}, "labels"),
        ({"labels": ["one", "one"]}, "two labels are the same"),
        ({"normalisation": {"mean": [0], "std": [0]}}, "normalisation.std"),
        ({"more": 1}, "more"),
    ],
)
def test_a_file_that_says_something_impossible_is_refused_by_its_place(tmp_path, change, said):
    (tmp_path / IMAGES).write_text(json.dumps(LEXICON.model_dump(mode="json") | change))
    with pytest.raises(ModelFormatError, match=said):
        read_image_lexicon(tmp_path)


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(ModelFormatError, match=r"images.json: missing, so this is no image model"):
        read_image_lexicon(tmp_path)
    (tmp_path / IMAGES).write_bytes(b"{")
    with pytest.raises(ModelFormatError, match=r"images.json: file: Invalid JSON"):
        read_image_lexicon(tmp_path)


# ---------------------------------------------------------------- sizes for who chose none
@pytest.mark.parametrize(("size", "patch"), [((28, 28), 4), ((32, 32), 4), ((64, 64), 8), ((96, 64), 16), ((8, 12), 2)])
def test_the_patch_is_the_smallest_that_makes_at_most_64(size, patch):
    assert choose_patch(size) == patch
    divisors = [side for side in range(1, 97) if gcd(*size) % side == 0]
    fitting = [side for side in divisors if (size[0] // side) * (size[1] // side) <= 64]
    assert patch == min(fitting)


def test_a_size_that_only_many_patches_divide_gets_the_largest():
    assert choose_patch((26, 34)) == 2  # 13 × 17 patches; 1 would make 884


@pytest.mark.parametrize("size", [(29, 31), (29, 29), (3, 200)])
def test_a_size_that_no_patch_divides_well_is_refused_with_one_that_works(size):
    with pytest.raises(RecipeError, match=r"no square patch.*--set data.images.size=\[\d+, \d+\]") as caught:
        choose_patch(size)
    near = str(caught.value).partition("size=[")[2].rstrip("]").split(", ")
    assert choose_patch((int(near[0]), int(near[1])))


@pytest.mark.parametrize("images", [1, 1_999, 2_000, 60_000, 1_000_000])
def test_every_choice_is_a_possible_model(images):
    data = {"task": {"kind": "classify-images"}, "data": {"images": {"train": "x", "size": [28, 28]}}}
    recipe = parse(overlay(choose_image_classifier(images, (28, 28)), data), "here")
    job(recipe).refuse_impossible(recipe)
    assert recipe.data.images.shift == 2


def test_the_recipe_for_digits_is_what_their_images_alone_would_give():
    tree = read_tree(Path(__file__).parents[2] / "recipes" / "mnist.yaml")
    written = parse(tree, "mnist")
    files = {"task": tree["task"], "data": {"images": {"train": "x"}}}
    alone = parse(overlay(choose_image_classifier(59_000, (28, 28)), files), "preset")
    training = written.training.model_copy(update={"budget": None})
    assert written.model_copy(update={"training": training, "data": alone.data}) == alone
    assert written.data.batch_tokens == alone.data.batch_tokens
    assert written.data.images.shift == alone.data.images.shift


@pytest.mark.parametrize("name", ["rdrop", "source_word_dropout"])
def test_losses_of_words_are_refused_for_images(name):
    tree = {"task": {"kind": "classify-images"}, "data": {"images": {"train": "x"}}, "loss": {name: 0.5}}
    recipe = parse(tree, "here")
    with pytest.raises(RecipeError, match=rf"loss.{name}: 0.5, but images have no words"):
        job(recipe).refuse_impossible(recipe)


def test_a_recipe_without_images_is_refused():
    recipe = parse({"task": {"kind": "classify-images"}, "data": {}}, "here")
    with pytest.raises(RecipeError, match=r"data\.images: missing"):
        job(recipe).load(recipe)


def test_labels_that_are_the_same_cannot_be_told_apart():
    with pytest.raises(ValidationError, match="two labels are the same"):
        ImageLexicon(size=(6, 9), channels=1, normalisation=GREYS, labels=("a", "a"))
