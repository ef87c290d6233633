"""Parsing is translation into brackets, but for how it is judged."""

import numpy as np
import pytest
import torch
from toy_trees import toy_trees

from regard.data.batches import Share
from regard.data.examples import encode
from regard.data.treebank import linearise, to_pair
from regard.decoding.options import SearchOptions
from regard.evaluation.brackets import score_brackets
from regard.evaluation.parses import tagged_as
from regard.recipe.build import build
from regard.recipe.models import TransformerOptions
from regard.tasks.options import LossOptions
from regard.tasks.parse import Parsing, find_trees, grammar_of
from regard.tasks.translate import TrainingSet, Translation, Validation, Vocabularies
from regard.text.characters import Characters
from regard.text.special import NAMES
from regard.text.symbols import Symbols

SEARCH = SearchOptions(beam=1)


@pytest.fixture(scope="module")
def vocabularies():
    targets = [to_pair(tree).target for tree in toy_trees(50, seed=1)]
    return Vocabularies(Characters(list("abcdefghijklmnopqrstuvwxyz .-LRB")), Symbols.learn(targets))


@pytest.fixture(scope="module")
def model(vocabularies):
    sizes = TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1, dropout=0.0)
    return build(sizes, len(vocabularies.source), len(vocabularies.target), shared=False, seed=1).eval()


@pytest.fixture(scope="module")
def grammar(vocabularies):
    return grammar_of(vocabularies.target, chains=2, cap=30)


@pytest.fixture(scope="module")
def task(vocabularies, grammar):
    pairs = [to_pair(tree) for tree in toy_trees(8, seed=2)]
    examples, kept = encode(pairs, vocabularies.source, vocabularies.target, 256)
    text = TrainingSet(examples, kept, [Share(len(examples))], 300, 0.0, seed=1)
    trees = toy_trees(5, seed=3)
    validation = Validation([to_pair(tree) for tree in trees], SEARCH, sentences=3)
    return Parsing(Translation(text, validation, vocabularies, LossOptions(smoothing=0.0)), trees, grammar)


def test_the_grammar_speaks_the_ids_of_the_vocabulary(vocabularies, grammar):
    assert vocabularies.target.decode(grammar.words) == "XX"
    for opened, label in grammar.opens.items():
        closed = next(id for id, other in grammar.closes.items() if other == label)
        assert vocabularies.target.decode([opened])[1:] == vocabularies.target.decode([closed])[1:]
    assert len(grammar.opens) * 2 + 1 + len(NAMES) == len(vocabularies.target)


def test_it_learns_as_a_translation_does(task, model):
    plans, others = task.batches(2), task.learning.batches(2)
    assert all(np.array_equal(one, other) for one, other in zip(plans, others, strict=True))
    assert sorted(np.concatenate(plans)) == list(range(8))
    loss = task.loss(model, task.collate(plans[0], 2))
    assert loss.units == sum(len(task.learning.data.pairs[i].target.split()) + 1 for i in plans[0])
    torch.testing.assert_close(loss.total, task.learning.loss(model, task.learning.collate(plans[0], 2)).total)
    assert len(task.largest()) > 0


def test_validation_is_the_loss_of_all_and_the_brackets_of_the_first(task, model, vocabularies, grammar):
    with torch.no_grad():
        found = task.evaluate(model)
    total = symbols = 0
    for tree in task.trees:
        ids = vocabularies.target.encode(" ".join(linearise(tree)))
        source = torch.tensor([[*vocabularies.source.encode(" ".join(tree.words)), 3]])
        with torch.no_grad():
            memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
            logits, _ = model.decoder(torch.tensor([[2, *ids]]), model.decoder.begin(memory))
        total += torch.nn.functional.cross_entropy(logits[0], torch.tensor([*ids, 3]), reduction="sum").item()
        symbols += len(ids) + 1
    assert found["loss"] == pytest.approx(total / symbols, rel=1e-5)
    gold = task.trees[:3]
    parsed = find_trees(model, vocabularies, grammar, [tree.words for tree in gold], SEARCH)
    expected = score_brackets(gold, tagged_as(gold, parsed))
    assert (found["f1"], found["complete_match"]) == (expected.f1, expected.complete_match)


def test_round_brackets_are_read_as_the_treebank_writes_them(model, vocabularies, grammar):
    sentences = [["the", "(", "cat", ")"], ["the", "-LRB-", "cat", "-RRB-"]]
    one, other = find_trees(model, vocabularies, grammar, sentences, SEARCH)
    assert one.words == sentences[0]
    assert linearise(one) == linearise(other)
