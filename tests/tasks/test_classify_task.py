"""Sorting texts: the loss that torch would compute, whatever the padding, the order and the batch."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.data.batches import Share
from regard.data.framing import framed
from regard.data.labelled import LabelledText
from regard.data.labels import Labels
from regard.errors import ModelFormatError
from regard.recipe.build_bert import build_classifier
from regard.recipe.models import BertOptions
from regard.tasks.classify import LABELS, Classes, Classification, Reading, Texts, cells, classify, read_labels, rows_of
from regard.tasks.interface import Task
from regard.tasks.options import LossOptions
from regard.text.characters import Characters
from regard.text.special import PAD, UNK

ALPHABET = Characters(list("abcde"))
VOCAB, MOST = len(ALPHABET) + 1, 9
SINGLE = [LabelledText(text, None, "x") for text in ("a", "abcde", "bb", "abcdeabcde", "ced", "dddd", "ea")]
PAIRS = [LabelledText(text.text, second, "x") for text, second in zip(SINGLE, ("ab", "c", "ddd") * 3, strict=False)]
IDS = np.array([0, 1, 2, 0, 1, 2, 1])


@pytest.fixture(scope="module")
def model():
    options = BertOptions(width=8, heads=2, feedforward=12, layers=2, dropout=0.0)
    return build_classifier(options, VOCAB, 3, seed=3).double().eval()


def task(examples=SINGLE, dropout=0.0, **options):
    reading = Reading(ALPHABET, MOST, 30, dropout, seed=7)
    texts = Texts(examples, IDS)
    return Classification(texts, [Share(len(examples))], texts, reading, LossOptions(**{"smoothing": 0.0, **options}))


def alone(model, example):
    """The logits of one text, by hand: its frame, cut, without padding."""
    if example.second is None:
        tokens = [2, *ALPHABET.encode(example.text)[: MOST - 2], 3]
        segments = [0] * len(tokens)
    else:
        first, second = ALPHABET.encode(example.text), ALPHABET.encode(example.second)
        while len(first) + len(second) + 3 > MOST:
            (first if len(first) > len(second) else second).pop()
        tokens, segments = [2, *first, 3, *second, 3], [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return model(torch.tensor([tokens]), torch.ones(1, len(tokens), dtype=torch.bool), torch.tensor([segments]))[0]


def test_it_is_a_task():
    assert isinstance(task(), Task)


@pytest.mark.parametrize("examples", [SINGLE, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_torch_on_each_text_alone(model, examples, smoothing):
    ours = task(examples, smoothing=smoothing)
    for plan in ours.batches(0):
        found = ours.loss(model, ours.collate(plan, 0))
        logits = torch.stack([alone(model, examples[i]) for i in plan])
        expected = F.cross_entropy(logits, torch.from_numpy(IDS[plan]), label_smoothing=smoothing, reduction="sum")
        torch.testing.assert_close(found.total, expected)
        assert found.units == len(plan)


def test_an_epoch_has_every_text_once_and_a_part_of_a_plan_is_a_plan(model):
    ours = task()
    assert sorted(np.concatenate(ours.batches(2)).tolist()) == list(range(7))
    plan = ours.largest()
    whole = ours.loss(model, ours.collate(plan, 0))
    parts = [ours.loss(model, ours.collate(plan[i::2], 0)) for i in range(2)]
    torch.testing.assert_close(whole.total, parts[0].total + parts[1].total)


@torch.no_grad()
def test_the_order_of_texts_is_the_order_of_answers(model):
    frames = [framed(ALPHABET.encode(example.text), None) for example in SINGLE[:3]]
    found = classify(model, frames, 12)
    for order in ([2, 0, 1], [1, 2, 0]):
        torch.testing.assert_close(classify(model, [frames[i] for i in order], 12), found[order])


def test_padding_is_of_the_first_segment():
    rows = rows_of([framed([5], [6, 7]), framed([5], None)])
    assert rows.segments[1].tolist() == [0] * 6
    assert rows.tokens[1].tolist() == [2, 5, 3, PAD, PAD, PAD]
    assert torch.equal(rows.mask, rows.tokens != PAD)
    assert all(torch.equal(a, b) for a, b in zip(cells(rows), (rows.tokens, rows.mask, rows.segments), strict=True))


@torch.no_grad()
def test_validation_counts_all_texts(model):
    logits = torch.stack([alone(model, example) for example in SINGLE])
    right = (logits.argmax(-1) == torch.from_numpy(IDS)).double().mean()
    found = task().evaluate(model)
    assert found["accuracy"] == pytest.approx(100 * float(right))
    assert found["loss"] == pytest.approx(float(F.cross_entropy(logits, torch.from_numpy(IDS))))
    assert found.keys() == {"loss", "accuracy", "macro_f1"}


def test_hidden_words_are_drawn_anew_in_every_epoch_and_the_same_in_each(model):
    ours, plain = task(source_word_dropout=0.5), task()
    plan = np.array([1, 3, 5])
    tokens = [ours.collate(plan, epoch).rows.tokens for epoch in (0, 0, 1)]
    assert torch.equal(tokens[0], tokens[1])
    assert not torch.equal(tokens[0], tokens[2])
    expected = plain.collate(plan, 0).rows.tokens
    assert ((tokens[0] == expected) | (tokens[0] == UNK)).all()
    assert torch.equal(ours.collate(plan[:1], 0).rows.tokens[0], tokens[0][0, :7])
    pairs = task(PAIRS, source_word_dropout=0.999)
    assert set(pairs.collate(np.array([1]), 0).rows.tokens.flatten().tolist()) <= {2, 3, UNK}
    del model


def test_another_segmentation_is_drawn_from_the_text(model):
    del model

    class Spy(Characters):
        def sample(self, text, dropout, rng):
            assert dropout == 0.25
            return self.encode(text[::-1]) if rng.random() < 2 else []

    reading = Reading(Spy(list("abcde")), MOST, 30, 0.25, 7)
    ours = Classification(Texts(PAIRS, IDS), [Share(7)], Texts(PAIRS, IDS), reading, LossOptions())
    found = ours.collate(np.array([1]), 0).rows.tokens[0].tolist()
    assert found == [2, *ALPHABET.encode("edcba"), 3, *ALPHABET.encode("c"), 3]


def test_without_dropout_two_passes_agree_and_the_loss_is_the_plain_one(model):
    plan = np.array([0, 1, 2, 4])
    plain, twice = task(), task(rdrop=5.0)
    found = twice.loss(model, twice.collate(plan, 0))
    torch.testing.assert_close(found.total, plain.loss(model, plain.collate(plan, 0)).total)
    gradients = []
    for ours in (plain, twice):
        model.zero_grad()
        ours.loss(model, ours.collate(plan, 0)).total.backward()
        gradients.append(model.output.weight.grad.clone())
    torch.testing.assert_close(gradients[0], gradients[1])


def test_it_knows_how_many_texts_it_cuts():
    assert task().shortened() == (1, 1)  # ten characters, start and end
    assert task(PAIRS).shortened() == (2, 2)  # 10 + 2 + 3 and 4 + 3 + 3 are more than nine, 5 + 1 + 3 are not


# ---------------------------------------------------------------- labels.json
def test_what_is_saved_is_read(tmp_path):
    Classes(ALPHABET, Labels(("ja", "nein")), pairs=True).save(tmp_path)
    assert read_labels(tmp_path) == (Labels(("ja", "nein")), True)
    assert (tmp_path / "shared.json").exists()


@pytest.mark.parametrize(
    "content",
    [None, "{", {"labels": ["a"], "pairs": False}, {"labels": ["a", "a"], "pairs": False}, {"labels": ["a", 1]}, []],
)
def test_a_damaged_list_of_labels_is_refused_by_name(tmp_path, content):
    if content is not None:
        (tmp_path / LABELS).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ModelFormatError, match=r"labels\.json.*copy the folder again"):
        read_labels(tmp_path)
