"""What a head is worth: losses by a plain loop, importance by finite differences, and which heads go first."""

import math
from pathlib import Path

import pytest
import torch

from regard.ablation import Ablation, load_ablation
from regard.data.pairs import Pair
from regard.engine import TorchEngine
from regard.errors import DataError, DecodingError, ModelFormatError
from regard.explaining.heads import Head, gated, headed, heads_at, silenced
from regard.explaining.record import record
from regard.explaining.roles import entropy
from regard.recipe.folder import ModelFolder, fresh_model
from regard.recipe.pruning import prune, pruned_recipe, taught
from regard.recipe.recipe import parse
from regard.tasks.translate import Vocabularies
from regard.text.characters import Characters
from regard.text.special import BOS, EOS

SOURCE, TARGET = Characters("abcdefgh "), Characters("ABCDEF ")
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}
PAIRS = [Pair("abc de", "ABC"), Pair("h", "DE FA B"), Pair("", "C"), Pair("ge fa", "FEED")]


def folder_of(loss=None, **model):
    corpus = {"source": "a", "target": "b", **({"alignment": "c"} if loss else {})}
    tree = {"data": {"corpora": [corpus]}, "text": {"kind": "characters", "shared": False}, "decoding": {"cap": 12}}
    tree |= {"model": {**({} if "kind" in model else SIZES), **model}, "loss": loss or {}}
    recipe, vocabularies = parse(tree, "test"), Vocabularies(SOURCE, TARGET)
    network = fresh_model(recipe, vocabularies).double().eval()
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return ModelFolder(Path("here"), recipe, vocabularies, network)


@pytest.fixture(scope="module")
def ablation():
    return Ablation(folder_of(), PAIRS)


def pair_losses(model):
    """Σ −log p of the tokens of each pair, one pair after another."""
    found = []
    for pair in PAIRS:
        source, goal = torch.tensor([[*SOURCE.encode(pair.source), EOS]]), [*TARGET.encode(pair.target), EOS]
        logits = model(source, source > 0, torch.tensor([[BOS, *goal[:-1]]]))
        found.append(-logits[0].log_softmax(-1)[torch.arange(len(goal)), goal].sum())
    return torch.stack(found)


TOKENS = sum(len(pair.target) + 1 for pair in PAIRS)


@torch.no_grad()
def test_losses_are_those_of_each_pair_alone_without_each_head(ablation):
    found = ablation.losses()
    assert ablation.tokens == TOKENS
    assert found.whole == pytest.approx(float(pair_losses(ablation.model).sum()) / TOKENS, abs=1e-9)
    assert list(found.without) == ablation.heads
    for head, loss in found.without.items():
        with silenced(ablation.model, [head]):
            assert loss == pytest.approx(float(pair_losses(ablation.model).sum()) / TOKENS, abs=1e-9)
        assert ablation.loss([head]) == pytest.approx(loss, abs=1e-9)
    assert ablation.loss() == pytest.approx(found.whole, abs=1e-9)


@torch.no_grad()
def test_importance_is_the_mean_size_of_finite_differences(ablation):
    found, step = ablation.importance(), 1e-5
    for path, module in headed(ablation.model).items():
        for place, head in enumerate(heads_at(path, module)):
            sides = []
            for sign in (1, -1):
                gate = torch.ones(1, module.heads).double()
                gate[:, place] += sign * step
                with gated(ablation.model, {path: gate}):
                    sides.append(pair_losses(ablation.model))
            expected = ((sides[0] - sides[1]) / (2 * step)).abs().sum() / TOKENS
            assert found[head] == pytest.approx(float(expected), rel=1e-5)


def test_bleu_without_heads_is_that_of_the_smaller_model(ablation):
    removed = [Head("encoder", 1, 2), Head("cross", 2, 1), Head("decoder", 1, 3)]
    ablation.folder.model.float()
    try:
        less = TorchEngine(prune(ablation.folder, removed))
        with silenced(ablation.model, removed):
            assert less.write(["abc de", "h"]) == TorchEngine(ablation.folder).write(["abc de", "h"])
        assert ablation.bleu(removed) == Ablation(less.folder, PAIRS).bleu()
    finally:
        ablation.folder.model.double()


def test_habits_are_means_over_the_texts(ablation):
    found = ablation.habits()
    assert set(found) == set(ablation.heads)
    total = torch.zeros(3, dtype=torch.float64)
    for pair in PAIRS:
        source = torch.tensor([[*SOURCE.encode(pair.source), EOS]])
        target = torch.tensor([[BOS, *TARGET.encode(pair.target)]])
        (seen,) = (x for x in record(ablation.model, source, target) if (x.kind, x.layer) == ("cross", 1))
        total += entropy(seen.weights)
    for head in (1, 2, 3):
        assert found[Head("cross", 2, head)].entropy == pytest.approx(float(total[head - 1]) / len(PAIRS))


# ---------------------------------------------------------------- which can go
def test_the_least_important_heads_go_first_and_are_judged_anew(ablation):
    worth = ablation.importance()
    first, second = ablation.least(2)
    assert first == min(worth, key=worth.get)
    without = ablation.importance([first])
    others = [head for head in ablation.heads if head != first]
    assert without[first] == 0
    assert second == min(others, key=without.get)


def test_each_attention_keeps_a_head(ablation):
    assert ablation.removable == 10
    left = set(ablation.heads) - set(ablation.least(10))
    assert {(head.kind, head.layer) for head in left} == {(head.kind, head.layer) for head in ablation.heads}
    assert len(left) == 5
    for count in (0, -1, 11, 15):
        with pytest.raises(DecodingError, match=f"prune {count}: of the 15 heads of this model 10 can go"):
            ablation.least(count)
    with pytest.raises(DecodingError, match="each layer of this model has one head of each kind"):
        Ablation(folder_of(heads=1), PAIRS).least(1)


def test_the_head_that_learned_to_align_stays_and_is_found_again():
    folder = folder_of(loss={"guided": 0.1, "guided_layer": 2, "guided_head": 3})
    assert taught(folder.recipe) == Head("cross", 2, 3)
    removed = Ablation(folder, PAIRS).least(10)
    assert not any((head.kind, head.layer, head.head) == ("cross", 2, 3) for head in removed)
    assert pruned_recipe(folder.recipe, removed).loss.guided_head == 1
    assert pruned_recipe(folder.recipe, [Head("cross", 2, 1), Head("cross", 1, 2)]).loss.guided_head == 2


# ---------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    "model",
    [
        {"kind": "recurrent", "embedding": 5, "width": 6},
        {"kind": "recurrent", "embedding": 5, "width": 6, "attention": "none", "input_feeding": False},
        {"kind": "bytenet", "width": 6},
        {"kind": "convs2s", "width": 6},
    ],
    ids=["attention RNN", "plain RNN", "ByteNet", "ConvS2S"],
)
def test_a_model_without_heads_is_refused(model):
    with pytest.raises(ModelFormatError, match=f"here: a {model['kind']} model, which attends with one head or not at"):
        Ablation(folder_of(**model), PAIRS)


def test_texts_that_say_nothing_are_refused(model, tmp_path):
    with pytest.raises(DataError, match="pairs: found none"):
        load_ablation(model, [])
    with pytest.raises(ModelFormatError, match="no such model"):
        load_ablation(tmp_path / "nowhere", PAIRS)
    assert math.isfinite(load_ablation(model, [Pair("", "")]).loss())
