"""A pruned model is smaller, and is the whole model with those heads silenced: in every family that has heads."""

from pathlib import Path

import pytest
import torch
from families import FAMILIES, SOURCE_VOCAB, TARGET_VOCAB, build, pad

from regard.data.image_lexicon import ImageLexicon
from regard.data.pixels import Normalisation
from regard.errors import RecipeError
from regard.explaining.heads import Head, every_head, silenced
from regard.models.interface import parameters
from regard.recipe import build as building
from regard.recipe.build_bert import build_classifier, build_masked
from regard.recipe.build_vit import build_vit
from regard.recipe.models import BertOptions, GptOptions, TransformerOptions, VitOptions
from regard.recipe.pruning import smaller, without
from regard.training.tensors import fill, weights

HEADED = [name for name, options in FAMILIES.items() if isinstance(options, TransformerOptions)]
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "layers": 2, "dropout": 0.0}
LEXICON = ImageLexicon(size=(4, 4), channels=1, normalisation=Normalisation(mean=(0.0,), std=(1.0,)), labels=("a", "b"))
TOKENS = torch.tensor([[2, 5, 4, 3], [2, 6, 3, 0]])
IMAGES = torch.linspace(-1, 1, 32, dtype=torch.float64).reshape(2, 1, 4, 4)
READERS = {  # options, what builds them, what the model is called with
    "GPT": (
        GptOptions(**SIZES, max_length=9),
        lambda o: building.build(o, 9, 9, shared=True, seed=1),
        (TOKENS[:, :0], TOKENS[:, :0].bool(), TOKENS),
    ),
    "GPT, ALiBi": (
        GptOptions(**SIZES, positions="alibi"),
        lambda o: building.build(o, 9, 9, shared=True, seed=1),
        (TOKENS[:, :0], TOKENS[:, :0].bool(), TOKENS),
    ),
    "BERT, hidden words": (
        BertOptions(**SIZES, max_length=9),
        lambda o: build_masked(o, 9, 1),
        (TOKENS, TOKENS > 0, torch.zeros_like(TOKENS)),
    ),
    "BERT, classes, relative bias": (
        BertOptions(**SIZES, positions="relative"),
        lambda o: build_classifier(o, 9, 3, 1),
        (TOKENS, TOKENS > 0, torch.zeros_like(TOKENS)),
    ),
    "ViT": (VitOptions(**SIZES, patch=2), lambda o: build_vit(o, LEXICON, seed=1), (IMAGES,)),
}


def shaken(model):
    """In float64, with weights large enough that everything has an effect."""
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def some(model):
    """Every second head, but of each attention the last one that is left."""
    removed, heads = [], every_head(model)
    for head in heads[::2]:
        beside = {one for one in heads if (one.kind, one.layer) == (head.kind, head.layer)} - set(removed)
        removed += [head] if len(beside) > 1 else []
    return removed


@torch.no_grad()
def holds(model, options, build, inputs):
    removed = some(model)
    less = build(without(options, removed)).double().eval()
    fill(weights(less), smaller(model, removed), Path("memory"))
    whole = model(*inputs)
    with silenced(model, removed):
        gone = model(*inputs)
    torch.testing.assert_close(less(*inputs), gone, rtol=0, atol=1e-9)
    assert not torch.allclose(whole, gone, atol=1e-6)
    assert parameters(less) < parameters(model)
    assert len(every_head(less)) == len(every_head(model)) - len(removed)


@pytest.mark.parametrize("name", HEADED)
def test_a_pruned_translator_is_the_whole_one_with_heads_silenced(name):
    options, (source, mask) = FAMILIES[name], pad([[4, 8, 5, 7, 3], [6, 3]])
    target = torch.tensor([[2, 4, 6, 5], [2, 5, 4, 4]])
    holds(
        build(name),
        options,
        lambda o: building.build(o, SOURCE_VOCAB, TARGET_VOCAB, shared=False, seed=1),
        (source, mask, target),
    )


@pytest.mark.parametrize("name", READERS)
def test_a_pruned_reader_is_the_whole_one_with_heads_silenced(name):
    options, build, inputs = READERS[name]
    holds(shaken(build(options)), options, build, inputs)


def test_a_pruned_model_can_be_pruned_again_and_heads_keep_their_names():
    options = without(TransformerOptions(heads=4, encoder_layers=2, decoder_layers=1), [Head("encoder", 2, 1)])
    assert options.kept_heads.encoder == ((1, 2, 3, 4), (2, 3, 4))
    again = without(options, [Head("encoder", 2, 2), Head("cross", 1, 4)])
    assert again.kept_heads.encoder == ((1, 2, 3, 4), (2, 4))
    assert again.kept_heads.cross == ((1, 2, 3),)
    assert without(again, []) == again


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"encoder": [[1, 2]]}, "model.kept_heads.encoder: found 1 layers, but this model has 2"),
        ({"cross": [[1], []]}, r"model.kept_heads.cross: found \[\] in layer 2, expected rising numbers from 1 to"),
        ({"decoder": [[2, 1], [1]]}, r"found \[2, 1\] in layer 1"),
        ({"decoder": [[1, 5], [1]]}, r"found \[1, 5\] in layer 1, expected rising numbers from 1 to model.heads 4"),
    ],
)
def test_heads_that_cannot_be_are_refused(kept, said):
    options = TransformerOptions(width=8, encoder_layers=2, decoder_layers=2, kept_heads=kept)
    with pytest.raises(RecipeError, match=said):
        building.build(options, 9, 9, shared=True, seed=1)
    with pytest.raises(RecipeError, match=r"model.kept_heads.encoder: found 2 layers, but this model has 0"):
        building.build(GptOptions(width=8, kept_heads={"encoder": [[1], [1]]}), 9, 9, shared=True, seed=1)
