"""Telling images apart: every image once an epoch, varied by itself alone, and the loss that torch would compute."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from bars import bars

from regard.data.image_lexicon import ImageLexicon
from regard.data.images import LabelledImages
from regard.data.pixels import Normalisation, normalise
from regard.evaluation.accuracy import confusion, macro_f1
from regard.recipe.build_vit import build_vit
from regard.recipe.models import VitOptions
from regard.tasks.images import ImageClassification, Variety, image_epoch
from regard.tasks.interface import Task

GREYS = Normalisation(mean=(0.2,), std=(0.3,))


def labelled(n, seed):
    images, _ = bars(n, seed)
    return LabelledImages(images[:, None], np.random.default_rng(seed).integers(3, size=n))


TRAIN, VALID = labelled(23, 1), labelled(11, 2)


def task(shift=0, flip=False, smoothing=0.0, rows=5):
    return ImageClassification(TRAIN, VALID, GREYS, Variety(rows, shift, flip, seed=7), smoothing)


@pytest.fixture(scope="module")
def model():
    lexicon = ImageLexicon(size=(8, 12), channels=1, normalisation=GREYS, labels=("a", "b", "c"))
    options = VitOptions(width=8, heads=2, feedforward=12, layers=2, dropout=0.0, patch=4)
    return build_vit(options, lexicon, seed=3).eval()


def test_it_is_a_task():
    assert isinstance(task(), Task)


@pytest.mark.parametrize("rows", [1, 5, 23, 40])
def test_an_epoch_has_every_image_once_in_batches_of_at_most_that_many_rows(rows):
    plans = task(rows=rows).batches(2)
    assert sorted(np.concatenate(plans)[:, 0].tolist()) == list(range(23))
    assert [len(plan) for plan in plans[:-1]] == [rows] * (len(plans) - 1)
    assert len(task(rows=rows).largest()) == min(rows, 23)


def test_epochs_and_seeds_have_orders_and_variations_of_their_own():
    plans = [
        np.concatenate(image_epoch(50, Variety(8, 2, True, seed), epoch)) for seed, epoch in ((1, 0), (1, 1), (2, 0))
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (plans[one][:, 0] != plans[other][:, 0]).any()
        sides = [plan[plan[:, 0].argsort(), 1:] for plan in (plans[one], plans[other])]
        assert (sides[0] != sides[1]).any()


def test_what_happens_to_an_image_does_not_depend_on_its_batch():
    small, large = (np.concatenate(image_epoch(30, Variety(rows, 2, True, 1), 4)) for rows in (3, 16))
    assert (small == large).all()


def test_moves_reach_as_far_as_asked_each_way_and_half_of_the_images_are_mirrored():
    rows = np.concatenate(image_epoch(4000, Variety(64, 2, True, 1), 0))
    for moves in rows[:, 1:3].T:
        values, counts = np.unique(moves, return_counts=True)
        assert values.tolist() == [-2, -1, 0, 1, 2]
        assert abs(counts - 800).max() < 5 * (4000 * 0.2 * 0.8) ** 0.5  # five standard deviations
    assert abs(rows[:, 3].sum() - 2000) < 5 * 1000**0.5


def test_without_variation_a_batch_is_the_normalised_images():
    plan = task().batches(0)[1]
    batch = task().collate(plan, 0)
    index = plan[:, 0]
    assert (batch.images.numpy() == normalise(TRAIN.pixels[index], GREYS)).all()
    assert batch.labels.tolist() == TRAIN.labels[index].tolist()


def test_with_variation_each_image_is_mirrored_then_moved_as_its_plan_says():
    ours = task(shift=2, flip=True)
    for plan in ours.batches(1):
        found = ours.collate(plan, 1).images
        for (index, down, right, mirrored), image in zip(plan.tolist(), found, strict=True):
            expected = np.zeros((8, 12), dtype=np.uint8)
            source = TRAIN.pixels[index, 0, :, ::-1] if mirrored else TRAIN.pixels[index, 0]
            for y in range(8):
                for x in range(12):
                    if 0 <= y - down < 8 and 0 <= x - right < 12:
                        expected[y, x] = source[y - down, x - right]
            assert (image.numpy() == normalise(expected[None, None], GREYS)[0]).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_torch(model, smoothing):
    ours = task(smoothing=smoothing)
    batch = ours.collate(ours.largest(), 0)
    found = ours.loss(model, batch)
    expected = F.cross_entropy(model(batch.images), batch.labels, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(found.total, expected)
    assert found.units == 5


def test_a_part_of_a_plan_is_a_plan(model):
    ours = task(shift=1, flip=True)
    plan = ours.largest()
    whole = ours.loss(model, ours.collate(plan, 0))
    parts = [ours.loss(model, ours.collate(plan[i::2], 0)) for i in range(2)]
    torch.testing.assert_close(whole.total, parts[0].total + parts[1].total)
    assert whole.units == sum(part.units for part in parts)


@pytest.mark.parametrize("rows", [3, 50])
def test_validation_scores_every_held_out_image_as_it_is(model, rows):
    with torch.no_grad():
        found = task(shift=2, flip=True, smoothing=0.1, rows=rows).evaluate(model)
        logits = model(torch.from_numpy(normalise(VALID.pixels, GREYS)))
    labels = torch.from_numpy(VALID.labels)
    right = int((logits.argmax(-1) == labels).sum())
    assert found["loss"] == pytest.approx(float(F.cross_entropy(logits, labels)), rel=1e-5)
    assert found["accuracy"] == pytest.approx(100 * right / 11)
    counts = confusion(logits.argmax(-1).tolist(), VALID.labels.tolist(), 3)
    assert found["macro_f1"] == pytest.approx(macro_f1(counts))
