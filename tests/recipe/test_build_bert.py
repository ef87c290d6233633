"""From options to BERT: one encoder under both heads, and what the options say is what is built."""

import pytest
import torch

from regard.errors import RecipeError
from regard.recipe.build import build
from regard.recipe.build_bert import build_classifier, build_masked
from regard.recipe.models import BertOptions
from regard.training.tensors import weights

TINY = {"width": 8, "heads": 2, "feedforward": 12, "layers": 2}
TOKENS = torch.tensor([[2, 5, 9, 3], [2, 7, 3, 0]])
MASK = TOKENS != 0
SEGMENTS = torch.zeros_like(TOKENS)
CHOICES = [
    {},
    {"positions": "rotary", "order": "post", "norm": "rms"},
    {"positions": "relative", "activation": "geglu", "tie_output": False},
    {"positions": "sinusoid", "position_join": "concatenate", "tie_output": False, "output_bias": None},
    {"positions": "alibi", "output_bias": False, "bias": False},
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_one_seed_gives_both_heads_the_same_encoder(choice):
    options = BertOptions(**TINY, **choice)
    masked, sorting = build_masked(options, 11, seed=4), build_classifier(options, 11, 3, seed=4)
    ours, theirs = (
        {name: tensor for name, tensor in weights(model).items() if name.startswith("encoder.")}
        for model in (masked, sorting)
    )
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=0)


@torch.no_grad()
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_padding_is_invisible_to_whatever_is_built(choice):
    options = BertOptions(**TINY, **choice)
    for model in (build_masked(options, 11, seed=4), build_classifier(options, 11, 3, seed=4)):
        model.double().eval()
        whole, alone = model(TOKENS, MASK, SEGMENTS), model(TOKENS[1:, :3], MASK[1:, :3], SEGMENTS[1:, :3])
        torch.testing.assert_close(whole[1, :3] if whole.dim() == 3 else whole[1], alone[0])


def test_the_output_layer_is_the_embedding_with_a_bias_of_its_own_unless_asked_otherwise():
    tied = build_masked(BertOptions(**TINY), 11, seed=1)
    assert tied.head.output.weight is tied.encoder.entrance.embedding.table.weight
    assert tied.head.output.bias.shape == (11,)
    free = build_masked(BertOptions(**TINY, tie_output=False, output_bias=False), 11, seed=1)
    assert free.head.output.weight is not free.encoder.entrance.embedding.table.weight
    assert free.head.output.bias is None


def test_building_leaves_the_global_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    build_masked(BertOptions(**TINY), 11, seed=1)
    build_classifier(BertOptions(**TINY), 11, 2, seed=1)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"heads": 3}, "model.heads: 3 does not divide"),
        ({"positions": "sinusoid", "position_join": "concatenate"}, "model.tie_output"),
        ({"positions": "sinusoid", "position_join": "concatenate", "position_width": 9}, "model.position_width: 9"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused_by_name(choice, said):
    options = BertOptions(**{**TINY, **choice})
    for make in (lambda: build_masked(options, 11, 1), lambda: build_classifier(options, 11, 2, 1)):
        with pytest.raises(RecipeError, match=said):
            make()


def test_it_is_no_model_that_writes():
    with pytest.raises(RecipeError, match=r"model\.kind: bert reads and does not write"):
        build(BertOptions(**TINY), 11, 11, shared=True, seed=1)
