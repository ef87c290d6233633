"""Predicting the next token: every token once, and the loss that torch would compute."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.data.packing import cropped_epoch, join, packed_epoch
from regard.models.interface import nothing_read
from regard.recipe.build import build
from regard.recipe.models import GptOptions
from regard.tasks.interface import Task
from regard.tasks.language_model import HeldOut, LanguageModelling, Rows
from regard.text.special import BOS, EOS

VOCAB, CONTEXT, ROWS = 11, 5, 3
TRAIN = join([[4, 5, 6, 7, 8, 9, 10, 4, 4], [5], [6, 6, 7, 8, 9, 4, 5, 10, 10, 9, 8, 7, 6, 5, 4, 4, 5]])
VALID = join([[4, 5, 6], [7, 8, 9, 10, 9, 8, 7, 6]])


@pytest.fixture(scope="module")
def model():
    options = GptOptions(width=8, heads=2, feedforward=12, layers=2, dropout=0.0)
    return build(options, VOCAB, VOCAB, shared=True, seed=3).double().eval()


def task(plan=packed_epoch, smoothing=0.0):
    return LanguageModelling(TRAIN, Rows(CONTEXT, ROWS, 7, plan, BOS), HeldOut(VALID, 25), smoothing)


def logits_of(model, inputs):
    return model.decoder(inputs, model.decoder.begin(nothing_read(len(inputs))))[0]


def test_it_is_a_task():
    assert isinstance(task(), Task)


@pytest.mark.parametrize("epoch", range(3))
def test_an_epoch_of_packed_rows_predicts_every_token_once(epoch):
    found = [task().collate(plan, epoch) for plan in task().batches(epoch)]
    assert sorted(torch.cat([batch.targets.flatten() for batch in found]).tolist()) == sorted(TRAIN.tolist())


@pytest.mark.parametrize("plan", [packed_epoch, cropped_epoch])
def test_what_is_seen_is_what_is_predicted_shifted_by_one_and_a_document_begins_with_the_start(plan):
    for batch in (task(plan).collate(part, 0) for part in task(plan).batches(0)):
        ended = batch.targets[:, :-1] == EOS
        assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1].masked_fill(ended, BOS))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_torch(model, smoothing):
    ours = task(smoothing=smoothing)
    batch = ours.collate(ours.largest(), 0)
    found = ours.loss(model, batch)
    logits = logits_of(model, batch.inputs).flatten(0, 1)
    expected = F.cross_entropy(logits, batch.targets.flatten(), label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(found.total, expected)
    assert found.units == batch.targets.numel()


def test_a_part_of_a_plan_is_a_plan(model):
    ours = task()
    plan = ours.largest()
    assert len(plan) > 1
    whole = ours.loss(model, ours.collate(plan, 0))
    parts = [ours.loss(model, ours.collate(plan[i::2], 0)) for i in range(2)]
    torch.testing.assert_close(whole.total, parts[0].total + parts[1].total)
    assert whole.units == sum(part.units for part in parts)


def test_validation_reads_all_of_the_held_out_text_in_rows_that_follow_one_another(model):
    before, total = BOS, 0.0
    for start in range(0, len(VALID), CONTEXT):
        row = VALID[start : start + CONTEXT]
        inputs = torch.tensor([[before, *row[:-1].tolist()]])
        inputs[inputs == EOS] = BOS
        log_p = logits_of(model, inputs).detach().log_softmax(-1)[0]
        total -= float(log_p[np.arange(len(row)), row].sum())
        before = int(row[-1])
    with torch.no_grad():
        found = task().evaluate(model)
    assert found["loss"] == pytest.approx(total / len(VALID))
    assert found["perplexity"] == pytest.approx(math.exp(total / len(VALID)))
    assert found["bits_per_character"] == pytest.approx(total / math.log(2) / 25)


def test_a_model_that_knows_nothing_needs_the_logarithm_of_the_vocabulary(model):
    ours = task()
    batch = ours.collate(ours.largest(), 0)
    known = model.decoder.output.weight.data.clone()
    model.decoder.output.weight.data.zero_()
    try:
        found = ours.loss(model, batch)
    finally:
        model.decoder.output.weight.data.copy_(known)
    assert float(found.total.detach()) / found.units == pytest.approx(math.log(VOCAB))
