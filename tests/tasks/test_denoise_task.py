"""Writing what was left out: source and target hold the row between them, and the loss is torch's."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.data.packing import join
from regard.data.spans import find_sentinels
from regard.errors import DataError, RecipeError
from regard.recipe.build import build
from regard.recipe.models import TransformerOptions
from regard.tasks.denoise import Corruption, Denoising
from regard.tasks.interface import Task
from regard.tasks.options import DenoiseOptions
from regard.text.bytes import Bytes
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import EOS

VOCAB, CONTEXT, ROWS = 19, 9, 2
SENTINELS = range(15, 19)
TRAIN = join([[4, 5, 6, 7, 8, 9, 10, 4, 4], [5, 11, 12], [6, 6, 7, 8, 9, 4, 5, 10, 10, 9, 8, 13, 12, 11, 4, 4, 5]])
VALID = join([[4, 5, 6], [7, 8, 9, 10, 9, 8, 7, 6, 5, 5]])


@pytest.fixture(scope="module")
def model():
    options = TransformerOptions(
        width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1, dropout=0.0, attention_dropout=0.0
    )
    return build(options, VOCAB, VOCAB, shared=True, seed=3).double().eval()


def task(smoothing=0.0, sentinels=SENTINELS, **options):
    how = Corruption(DenoiseOptions(context=CONTEXT, density=0.4, mean_length=2.0, **options), sentinels, ROWS, 7)
    return Denoising(TRAIN, VALID, how, smoothing)


def restored(batch):
    """The rows of the stream, each stretch put back in the place of its sentinel."""
    rows = []
    lengths = batch.source_mask.sum(1).tolist()
    for source, target, s, t in zip(batch.source, batch.targets, lengths, batch.mask.sum(1).tolist(), strict=True):
        stretches, last = {}, None
        for id in target[: t - 1].tolist():  # without the end
            if id in SENTINELS:
                stretches[id] = []
                last = id
            else:
                stretches[last].append(id)
        rows.append([token for id in source[: s - 1].tolist() for token in stretches.get(id, [id])])
    return rows


def test_it_is_a_task():
    assert isinstance(task(), Task)


@pytest.mark.parametrize("epoch", range(3))
def test_an_epoch_shows_every_token_once_in_source_or_target(epoch):
    ours = task()
    rows = [row for plan in ours.batches(epoch) for row in restored(ours.collate(plan, epoch))]
    assert sorted(token for row in rows for token in row) == sorted(TRAIN.tolist())


def test_stretches_are_the_same_for_an_epoch_and_others_in_the_next():
    ours = task()
    plan = ours.batches(0)[0]
    once, again, later = (ours.collate(plan, epoch).source.tolist() for epoch in (0, 0, 1))
    assert once == again
    assert once != later


def reference(model, batch):
    """Σ −log p of every target token, row by row, without padding."""
    total, count = 0.0, 0
    for row in range(len(batch.source)):
        s, t = int(batch.source_mask[row].sum()), int(batch.mask[row].sum())
        memory = model.encode(batch.source[row : row + 1, :s], batch.source_mask[row : row + 1, :s])
        features, _ = model.decoder.features(batch.inputs[row : row + 1, :t], model.decoder.begin(memory))
        logits = model.decoder.output(features)[0]
        total += F.cross_entropy(logits, batch.targets[row, :t], reduction="sum").item()
        count += t
    return total, count


@torch.no_grad()
def test_the_loss_is_the_cross_entropy_of_what_was_left_out(model):
    ours = task()
    batch = ours.collate(ours.largest(), 0)
    total, count = reference(model, batch)
    found = ours.loss(model, batch)
    assert found.units == count
    assert found.total.item() == pytest.approx(total, rel=1e-10)


@torch.no_grad()
def test_validation_is_the_mean_over_all_held_out_rows(model):
    ours = task(smoothing=0.3)
    windows = [np.array([[first, min(first + CONTEXT, len(VALID))]]) for first in range(0, len(VALID), CONTEXT)]
    sums = [reference(model, ours.cut(VALID, window, 0)) for window in windows]
    expected = sum(total for total, _ in sums) / sum(count for _, count in sums)
    found = ours.evaluate(model)
    assert found["loss"] == pytest.approx(expected, rel=1e-10)
    assert found["perplexity"] == pytest.approx(math.exp(expected), rel=1e-6)


def test_too_few_sentinels_are_known_before_the_first_step():
    with pytest.raises(DataError, match=r"make 2 spans, the vocabulary has 1 sentinels"):
        task(sentinels=range(18, 19))


# ---------------------------------------------------------------- the vocabulary
LINES = ["a man rides a bike", "two dogs run through the snow", "the man sees the dogs"] * 5


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_learned_sentinels_stand_for_themselves_in_rising_order(kind):
    tokeniser = learn(LINES, TextOptions(kind=kind, sentinels=3), 1)
    found = find_sentinels(tokeniser)
    assert [tokeniser.name(id) for id in found] == ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]
    assert found[0] > EOS
    inside = tokeniser.encode("a man <extra_id_1> a bike")
    assert [id for id in inside if id in found] == [found[1]]
    assert tokeniser.decode(tokeniser.encode("two dogs run")) == "two dogs run"


def test_a_vocabulary_grows_by_its_sentinels():
    plain, more = (learn(LINES, TextOptions(sentinels=count), 1) for count in (0, 5))
    assert len(more) <= len(plain) + 5
    assert len(find_sentinels(more)) == 5


def test_a_vocabulary_without_sentinels_is_refused():
    with pytest.raises(DataError, match=r"text\.sentinels: this vocabulary has none"):
        find_sentinels(Bytes())
    with pytest.raises(RecipeError, match=r"text\.sentinels: 3, but characters have none; use bpe or unigram"):
        learn(LINES, TextOptions(kind="characters", sentinels=3), 1)
