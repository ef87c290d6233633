"""The translation task: what a batch holds, what its loss is, what validation measures."""

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.data.batches import Share
from regard.data.examples import encode
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.evaluation.scores import bleu, exact_match
from regard.layers.consistency import consistent_cross_entropy
from regard.recipe.build import build
from regard.recipe.models import RecurrentOptions, TransformerOptions
from regard.tasks.options import LossOptions
from regard.tasks.translate import (
    TrainingSet,
    Translation,
    Validation,
    Vocabularies,
    collate,
    consistent_loss,
    features,
    translation_loss,
)
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import BOS, EOS, PAD, UNK

MODELS = {
    "transformer": TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1),
    "recurrent": RecurrentOptions(width=6, embedding=5),
}
PAIRS = [Pair("ab", "BA"), Pair("abc", "CBA"), Pair("b", "B"), Pair("cab ab", "BA BAC")]
LETTERS = Characters(" abcABC")
SMOOTHED = LossOptions(smoothing=0.1)


def model_of(kind: str, vocab: int):
    return build(MODELS[kind], vocab, vocab, shared=True, seed=3).double().eval()


def task_of(vocabulary, dropout: float = 0.0, sentences: int = 3, options: LossOptions = SMOOTHED) -> Translation:
    examples, pairs = encode(PAIRS, vocabulary, vocabulary, 99)
    data = TrainingSet(examples, pairs, [Share(len(examples))], batch_tokens=16, dropout=dropout, seed=5)
    validation = Validation(PAIRS, SearchOptions(beam=1, cap=6), sentences)
    return Translation(data, validation, Vocabularies(vocabulary, vocabulary), options)


def test_inputs_are_the_targets_one_step_earlier():
    batch = collate([[7], [8, 9, 10]], [[5, 6, 7], [4]])
    assert batch.source.tolist() == [[7, EOS, PAD, PAD], [8, 9, 10, EOS]]
    assert batch.targets.tolist() == [[5, 6, 7, EOS], [4, EOS, PAD, PAD]]
    assert batch.mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.source_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert (batch.inputs[:, 0] == BOS).all()
    assert batch.inputs[:, 1:].tolist() == batch.targets[:, :-1].tolist()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_is_the_cross_entropy_of_the_logits(kind, smoothing):
    batch = collate([[7], [8, 9, 10]], [[5, 6, 7], [4]])
    model = model_of(kind, 11)
    found = translation_loss(model, batch, smoothing)
    logits = model(batch.source, batch.source_mask, batch.inputs)
    expected = F.cross_entropy(
        logits.flatten(0, 1),
        batch.targets.masked_fill(~batch.mask, -100).flatten(),
        label_smoothing=smoothing,
        reduction="sum",
    )
    torch.testing.assert_close(found.total, expected)
    assert found.units == 6


@pytest.mark.parametrize("kind", MODELS)
def test_the_loss_of_a_batch_is_the_sum_over_its_pairs(kind):
    sources, targets = [[7], [8, 9, 10], [4, 4]], [[5, 6, 7], [4], []]
    model = model_of(kind, 11)
    whole = translation_loss(model, collate(sources, targets), 0.1)
    parts = [translation_loss(model, collate([s], [t]), 0.1) for s, t in zip(sources, targets, strict=True)]
    torch.testing.assert_close(whole.total, sum(part.total for part in parts))
    assert whole.units == sum(part.units for part in parts)


def test_an_epoch_holds_every_example_once_and_the_largest_batch_is_one_of_them():
    task = task_of(LETTERS)
    for epoch in (0, 1):
        assert sorted(np.concatenate(task.batches(epoch)).tolist()) == [0, 1, 2, 3]
    assert task.largest().tolist() in [plan.tolist() for plan in task.batches(0)]
    batch = task.collate(np.array([3, 0]), epoch=0)
    assert LETTERS.decode(batch.source[0].tolist()) == "cab ab"
    assert LETTERS.decode(batch.targets[1].tolist()) == "BA"


def test_sampled_subwords_are_a_function_of_seed_epoch_and_example():
    lines = ["the cat sat on the mat", "the hat that the cat sat on", "a cat and a hat"] * 5
    vocabulary = learn(lines, TextOptions(size=300), seed=1)
    pairs = [Pair(line, line) for line in lines[:3]]
    examples, kept = encode(pairs, vocabulary, vocabulary, 99)
    first, second = (
        Translation(
            TrainingSet(examples, kept, [Share(3)], 64, dropout=0.5, seed=seed),
            Validation(pairs, SearchOptions(), 1),
            Vocabularies(vocabulary, vocabulary),
            LossOptions(),
        )
        for seed in (1, 2)
    )
    random.seed(0)
    once = [first.resample(i, epoch) for epoch in range(3) for i in range(3)]
    random.seed(1)
    again = [first.resample(i, epoch) for epoch in reversed(range(3)) for i in reversed(range(3))]
    assert once == again[::-1]
    assert once != [second.resample(i, epoch) for epoch in range(3) for i in range(3)]
    assert len({str(sides) for sides in once}) > 3  # more than one segmentation of each sentence
    assert all(vocabulary.decode(side) in lines for sides in once for side in sides)
    batch = first.collate(np.array([2, 0]), epoch=1)
    assert batch.source[batch.source_mask].tolist() == [*once[5][0], EOS, *once[3][0], EOS]


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("kind", MODELS)
def test_without_dropout_two_passes_are_one(kind):
    batch = collate([[7], [8, 9, 10]], [[5, 6, 7], [4]])
    model = model_of(kind, 11)
    once, twice = translation_loss(model, batch, 0.1), consistent_loss(model, batch, 0.1, 5.0)
    assert twice.units == once.units
    torch.testing.assert_close(twice.total, once.total)
    torch.testing.assert_close(gradients(model, twice.total), gradients(model, once.total))


@pytest.mark.parametrize("kind", MODELS)
def test_two_passes_show_their_cross_entropy_and_learn_from_the_whole(kind):
    batch = collate([[7], [8, 9, 10]], [[5, 6, 7], [4]])
    model, targets = model_of(kind, 11).train(), batch.targets[batch.mask]
    torch.manual_seed(4)
    found = consistent_loss(model, batch, 0.1, 5.0)
    ours = gradients(model, found.total)
    torch.manual_seed(4)
    first, second = model.decoder.output(features(model, batch, 2))
    assert not torch.allclose(first, second)  # other dropout
    whole = consistent_cross_entropy(first, second, targets, 0.1, 5.0)
    torch.testing.assert_close(ours, gradients(model, whole))
    shown = sum(F.cross_entropy(x, targets, label_smoothing=0.1, reduction="sum") for x in (first, second)) / 2
    torch.testing.assert_close(found.total, shown)
    assert found.units == len(targets)


def test_the_recipe_decides_which_loss_it_is():
    model, plan = model_of("transformer", len(LETTERS)), np.array([1, 3])
    for rdrop in (0.0, 5.0):
        task = task_of(LETTERS, options=LossOptions(smoothing=0.1, rdrop=rdrop))
        batch = task.collate(plan, 0)
        torch.manual_seed(8)
        found = task.loss(model.train(), batch)
        torch.manual_seed(8)
        expected = consistent_loss(model, batch, 0.1, 5.0) if rdrop else translation_loss(model, batch, 0.1)
        assert torch.equal(found.total, expected.total)


class Costly(torch.nn.Module):
    """Something in a model that asks for a price: the sum of its output, whatever that is."""

    def __init__(self, priced):
        super().__init__()
        self.priced = priced

    def forward(self, *arguments):
        return self.priced(*arguments)

    def penalty(self, output):
        return output.sum()


def test_what_a_model_asks_for_is_learned_from_but_not_shown():
    model, task = model_of("transformer", len(LETTERS)), task_of(LETTERS)
    batch = task.collate(np.array([1, 3]), 0)
    plain = task.loss(model, batch)
    before = gradients(model, plain.total)
    price = model.encoder.entrance(batch.source, 0).sum() + model.decoder.entrance(batch.inputs, 0).sum()
    of_price = gradients(model, price)
    model.encoder.entrance, model.decoder.entrance = Costly(model.encoder.entrance), Costly(model.decoder.entrance)
    asked = task.loss(model, batch)
    assert (asked.total.item(), asked.units) == (plain.total.item(), plain.units)
    found = {name.replace(".priced", ""): gradient for name, gradient in gradients(model, asked.total).items()}
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, before[name] + plain.units * of_price.get(name, torch.zeros(())))


@pytest.mark.parametrize(("source", "target"), [(0.5, 0.0), (0.0, 0.5), (0.4, 0.3)])
def test_dropped_words_are_hidden_from_the_model_and_still_asked_of_it(source, target):
    options = LossOptions(source_word_dropout=source, target_word_dropout=target)
    task, plain = task_of(LETTERS, options=options), task_of(LETTERS)
    plan, holes = np.array([3, 1, 0, 2]), {"source": 0, "inputs": 0}
    for epoch in range(30):
        found, whole = task.collate(plan, epoch), plain.collate(plan, epoch)
        assert torch.equal(found.targets, whole.targets)
        assert torch.equal(found.source_mask, whole.source_mask)
        for name in holes:
            seen, there = getattr(found, name), getattr(whole, name)
            assert ((seen == there) | (seen == UNK)).all()
            assert not ((seen == UNK) & ((there == EOS) | (there == BOS) | (there == PAD))).any()
            holes[name] += int((seen == UNK).sum())
    assert holes["source"] == pytest.approx(source * 30 * 12, abs=60)  # letters and blanks of the sources
    assert holes["inputs"] == pytest.approx(target * 30 * 12, abs=60)


def test_dropped_words_are_a_function_of_seed_epoch_and_example():
    task = task_of(LETTERS, options=LossOptions(source_word_dropout=0.5, target_word_dropout=0.5))
    alone = [task.collate(np.array([3]), epoch).source.tolist() for epoch in range(6)]
    random.seed(1)
    again = [task.collate(np.array([3, 0]), epoch).source[0].tolist() for epoch in reversed(range(6))]
    assert [row for (row,) in alone] == again[::-1]
    assert len({str(row) for row in alone}) > 3


@pytest.mark.parametrize("kind", MODELS)
def test_validation_is_a_plain_loop_over_pairs_and_tokens(kind):
    model, task = model_of(kind, len(LETTERS)), task_of(LETTERS, sentences=3)
    losses, texts = [], []
    for pair in PAIRS:
        source = torch.tensor([[*LETTERS.encode(pair.source), EOS]])
        seen, mask = [BOS], torch.ones_like(source, dtype=torch.bool)
        for token in [*LETTERS.encode(pair.target), EOS]:
            losses.append(-model(source, mask, torch.tensor([seen]))[0, -1].log_softmax(-1)[token].item())
            seen.append(token)
        texts.append(greedy(model, source, mask))
    found = task.evaluate(model)
    mean = sum(losses) / len(losses)
    assert found["loss"] == pytest.approx(mean)
    assert found["perplexity"] == pytest.approx(np.exp(mean))
    references = [pair.target for pair in PAIRS[:3]]
    assert found["bleu"] == bleu(texts[:3], references).score
    assert found["exact_match"] == exact_match(texts[:3], references)


def greedy(model, source, mask) -> str:
    seen = [BOS]
    while len(seen) <= 6:  # the cap, and the start token
        scores = model(source, mask, torch.tensor([seen]))[0, -1]
        scores[[0, 1, 2]] = -torch.inf
        seen.append(int(scores.argmax()))
        if seen[-1] == EOS:
            break
    return LETTERS.decode(seen)
