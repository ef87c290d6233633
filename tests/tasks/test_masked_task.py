"""Naming hidden tokens: the loss that torch would compute where something was hidden, and the same holes every time."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.data.masking import mask_id, word_beginnings
from regard.data.packing import join
from regard.errors import DataError
from regard.recipe.build_bert import build_masked
from regard.recipe.models import BertOptions
from regard.tasks.interface import Task
from regard.tasks.masked import Hiding, MaskedLanguageModelling
from regard.tasks.options import MaskedOptions
from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import BOS, EOS, UNK

VOCAB, CONTEXT, ROWS = 15, 7, 3
MASK = VOCAB - 1
BEGINS = np.arange(VOCAB) % 2 == 0
TRAIN = join([[4, 5, 6, 7, 8, 9, 10, 4, 4], [5], [6, 6, 7, 8, 9, 4, 5, 10, 10, 9, 8, 13, 12, 11, 4, 4, 5]])
VALID = join([[4, 5, 6], [7, 8, 9, 10, 9, 8, 7, 6]])


@pytest.fixture(scope="module")
def model():
    options = BertOptions(width=8, heads=2, feedforward=12, layers=2, dropout=0.0)
    return build_masked(options, VOCAB, seed=3).double().eval()


def task(smoothing=0.0, **options):
    hiding = Hiding(MaskedOptions(context=CONTEXT, share=0.4, **options), BEGINS, ROWS, 7)
    return MaskedLanguageModelling(TRAIN, VALID, hiding, smoothing)


def logits_of(model, batch):
    return model(batch.tokens, torch.ones_like(batch.chosen), torch.zeros_like(batch.tokens))[batch.chosen]


def test_it_is_a_task():
    assert isinstance(task(), Task)


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("epoch", range(3))
def test_an_epoch_shows_every_token_once_but_for_the_holes(epoch, whole_words):
    ours = task(whole_words=whole_words)
    found = []
    for plan in ours.batches(epoch):
        batch = ours.collate(plan, epoch)
        restored = batch.tokens.clone()
        restored[batch.chosen] = batch.targets
        assert (restored[:, 0] == BOS).all()
        assert (restored[:, -1] == EOS).all()
        assert not (batch.targets < 4).any()
        assert batch.chosen.any(1).all()
        found += restored[:, 1:-1].flatten().tolist()
    left_out = len(TRAIN) - len(found)
    assert left_out <= 1  # a lone end of a document, in which nothing can be hidden
    assert sorted(found + [EOS] * left_out) == sorted(TRAIN.tolist())


def test_words_are_hidden_whole():
    ours = task(whole_words=True)
    for plan in ours.batches(0):
        batch = ours.collate(plan, 0)
        restored = batch.tokens.clone()
        restored[batch.chosen] = batch.targets
        for ids, chosen in zip(restored.tolist(), batch.chosen.tolist(), strict=True):
            for place in range(1, len(ids)):
                inside = ids[place] >= 4 and ids[place - 1] >= 4 and not BEGINS[ids[place]]
                assert not inside or chosen[place] == chosen[place - 1]


def test_holes_depend_on_epoch_and_place_but_not_on_the_batch():
    ours = task()
    plan = ours.largest()
    assert len(plan) > 1
    whole, again, later = ours.collate(plan, 0), ours.collate(plan, 0), ours.collate(plan, 1)
    assert torch.equal(whole.tokens, again.tokens)
    assert not torch.equal(whole.chosen, later.chosen)
    turned = ours.collate(plan[::-1], 0)
    assert torch.equal(turned.tokens, whole.tokens.flip(0))
    assert torch.equal(turned.chosen, whole.chosen.flip(0))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_torch_at_the_same_positions(model, smoothing):
    ours = task(smoothing)
    batch = ours.collate(ours.largest(), 0)
    found = ours.loss(model, batch)
    expected = F.cross_entropy(logits_of(model, batch), batch.targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(found.total, expected)
    assert found.units == int(batch.chosen.sum())


def test_a_part_of_a_plan_is_a_plan(model):
    ours = task()
    plan = ours.largest()
    whole = ours.loss(model, ours.collate(plan, 0))
    parts = [ours.loss(model, ours.collate(plan[i::2], 0)) for i in range(2)]
    torch.testing.assert_close(whole.total, parts[0].total + parts[1].total)
    assert whole.units == sum(part.units for part in parts)


@torch.no_grad()
def test_validation_is_the_mean_over_all_holes_and_the_same_every_time(model):
    ours, total, right, count = task(), 0.0, 0, 0
    for first in range(0, len(VALID), CONTEXT - 2):
        if not (VALID[first : first + CONTEXT - 2] >= 4).any():
            continue
        batch = ours.cut(VALID, np.array([[first, min(first + CONTEXT - 2, len(VALID))]]), 0)
        log_p = logits_of(model, batch).log_softmax(-1)
        total -= float(log_p.gather(1, batch.targets[:, None]).sum())
        right += int((log_p.argmax(-1) == batch.targets).sum())
        count += len(batch.targets)
    found = ours.evaluate(model)
    assert found == ours.evaluate(model)
    assert found["loss"] == pytest.approx(total / count)
    assert found["perplexity"] == pytest.approx(math.exp(total / count))
    assert found["accuracy"] == pytest.approx(100 * right / count)


@pytest.mark.parametrize("stream", [(TRAIN, join([[UNK]])), (join([[UNK]]), VALID)])
def test_text_in_which_nothing_can_be_hidden_is_refused(stream):
    with pytest.raises(DataError, match="no known token that could be hidden"):
        MaskedLanguageModelling(*stream, Hiding(MaskedOptions(), BEGINS, ROWS, 7), 0.0)


# ---------------------------------------------------------------- words and the mask of a tokeniser
def test_a_word_of_subwords_begins_with_a_space_or_after_a_line_end():
    tokeniser = learn(["der hund und die katze und der kater"] * 9, TextOptions(), 1)
    begins = word_beginnings(tokeniser)
    assert len(begins) == len(tokeniser) + 1 == mask_id(tokeniser) + 1
    ids = tokeniser.encode("der kater\nund die kkk")
    firsts = [begins[id] for id in ids]
    starts = [
        piece.start for piece, first in zip(tokeniser.pieces("der kater\nund die kkk"), firsts, strict=True) if first
    ]
    assert starts == [0, 3, 9, 13, 17]  # each with the space or the line end before it


def test_a_word_of_characters_or_bytes_begins_with_a_space():
    for tokeniser in (Characters(list("ab \n")), Bytes()):
        begins = word_beginnings(tokeniser)
        assert [bool(begins[id]) for id in tokeniser.encode("ab a\nb")] == [False, False, True, False, True, False]
