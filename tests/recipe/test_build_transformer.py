"""Impossible models are refused in one line that names the key."""

import pytest
import torch

from regard.errors import RecipeError
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import TransformerOptions

IMPOSSIBLE = {
    r"^model\.heads: 5 does not divide model\.width 256; try 1, 2, 4, 8, 16, 32, 64, or set": {"heads": 5},
    r"^model\.width: 9 is odd": {"width": 9, "heads": 3},
    r"^model\.head_width: 3 is odd": {"width": 6, "heads": 2, "positions": "rotary"},
    r"^model\.head_width: 5 is odd": {"head_width": 5, "positions": "rotary"},
    r"^model\.position_width: 8 leaves 0 of model\.width 8": {
        "width": 8,
        "position_width": 8,
        "position_join": "concatenate",
    },
    r"^model\.position_width: 3 is odd": {"position_width": 3, "position_join": "concatenate"},
    r"^model\.tie_output: .* set model\.tie_output false": {"position_join": "concatenate"},
    r"^model\.width: 7 is odd": {"width": 7, "heads": 1, "positions": "sinusoid-halves"},
    r"^model\.position_farthest: 16 is not beyond the 16 distances .*position_buckets 32 .*; raise it": {
        "positions": "relative",
        "position_farthest": 16,
    },
    r"^model\.positions: rotary acts on pairs": {"attention": "linear", "positions": "rotary"},
    r"^model\.positions: alibi acts on pairs": {"attention": "linear", "positions": "alibi"},
    r"^model\.active: 3 of 3 experts leaves none to choose": {"experts": 3, "active": 3},
    r"^model\.attention_dropout: 0\.1 drops": {"attention": "linear", "attention_dropout": 0.1},
}


@pytest.mark.parametrize("message", IMPOSSIBLE)
def test_an_impossible_model_is_refused_with_its_key(message):
    with pytest.raises(RecipeError, match=message) as refusal:
        build_transformer(TransformerOptions(**IMPOSSIBLE[message]), 9, 9, shared=True)
    assert "\n" not in str(refusal.value)


def test_an_odd_width_is_fine_where_nothing_comes_in_pairs():
    options = TransformerOptions(width=9, heads=3, positions="learned", encoder_layers=1, decoder_layers=1)
    model = build_transformer(options, 7, 7, shared=False).eval()
    tokens = torch.tensor([[4, 5, 6]])
    logits = model(tokens, torch.ones(1, 3, dtype=torch.bool), tokens)
    features, _ = model.decoder.features(
        tokens, model.decoder.begin(model.encode(tokens, torch.ones(1, 3, dtype=torch.bool)))
    )
    torch.testing.assert_close(logits, features @ model.decoder.entrance.embedding.table.weight.T)


@pytest.mark.parametrize(
    ("tied", "asked", "found"),
    [(True, None, False), (True, True, True), (False, None, True), (False, False, False), (False, True, True)],
)
def test_the_output_has_a_bias_if_asked_for_and_else_unless_it_is_tied(tied, asked, found):
    options = TransformerOptions(
        width=6, heads=2, encoder_layers=1, decoder_layers=1, tie_output=tied, output_bias=asked
    )
    output = build_transformer(options, 5, 7, shared=False).decoder.output
    assert (output.bias is not None) == found
    assert not found or output.bias.tolist() == pytest.approx([0.0] * 7)


def test_without_biases_only_norms_and_the_output_have_a_vector():
    options = TransformerOptions(width=6, heads=2, encoder_layers=1, decoder_layers=1, bias=False, output_bias=True)
    names = [
        name for name, weight in build_transformer(options, 5, 5, shared=True).named_parameters() if weight.dim() == 1
    ]
    assert all("norm." in name or name == "decoder.output.bias" for name in names)
    assert "decoder.output.bias" in names


def test_every_norm_has_the_chosen_epsilon():
    sizes = {"width": 6, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "norm_epsilon": 0.25}
    for norm in ("layer", "layer-outside", "rms"):
        model = build_transformer(TransformerOptions(norm=norm, **sizes), 5, 5, shared=True)
        found = [part.epsilon for part in model.modules() if hasattr(part, "epsilon")]
        assert found == [0.25] * 7  # two and three sub-layers, and an end of either stack
