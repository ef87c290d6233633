"""How attention flows through layers: worked by hand on two layers, and gradients against a model that holds its A."""

import pytest
import torch

from regard.data.image_lexicon import ImageLexicon
from regard.data.pixels import Normalisation
from regard.explaining.rollout import recorded, recorded_with_gradients, relevance, rollout
from regard.recipe.build_vit import build_vit
from regard.recipe.models import VitOptions


def stack(*layers):
    return torch.tensor(layers).double()  # (layers, h, t, t)


# ---------------------------------------------------------------- by hand
def test_rollout_of_two_layers_by_hand():
    """Heads average to A₁ = [[1, 0], [½, ½]] and A₂ = [[0, 1], [1, 0]]; half of each is the place itself."""
    first = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    second = [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]
    # Ã₁ = [[1, 0], [¼, ¾]], Ã₂ = [[½, ½], [½, ½]]; Ã₂ Ã₁ = [[5/8, 3/8], [5/8, 3/8]]
    expected = torch.tensor([[0.625, 0.375], [0.625, 0.375]]).double()
    torch.testing.assert_close(rollout(stack(first, second)), expected)


def test_relevance_of_two_layers_by_hand():
    """One head: Ā₁ = [[0, ¼], [½, 0]], as what lowers y is left out, and Ā₂ = [[0, 1], [0, 0]]."""
    weights = stack([[[0.5, 0.5], [0.25, 0.75]]], [[[0.5, 0.5], [1.0, 0.0]]])
    gradients = stack([[[-1.0, 0.5], [2.0, -3.0]]], [[[0.0, 2.0], [0.0, 5.0]]])
    # R₁ = I + Ā₁ = [[1, ¼], [½, 1]]; R₂ = R₁ + Ā₂ R₁ = [[1 + ½, ¼ + 1], [½, 1]]
    expected = torch.tensor([[1.5, 1.25], [0.5, 1.0]]).double()
    torch.testing.assert_close(relevance(weights, gradients), expected)


def test_heads_are_averaged_after_what_lowers_the_output_is_left_out():
    weights = stack([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    gradients = stack([[[2.0, 0.0], [0.0, 0.0]], [[-8.0, 0.0], [0.0, 4.0]]])
    torch.testing.assert_close(relevance(weights, gradients), torch.tensor([[2.0, 0.0], [0.0, 3.0]]).double())


# ---------------------------------------------------------------- laws
@pytest.fixture
def weights():
    torch.manual_seed(5)
    return torch.randn(3, 2, 5, 5).double().softmax(-1)


def test_rollout_hands_out_all_of_every_place(weights):
    found = rollout(weights)
    torch.testing.assert_close(found.sum(-1), torch.ones(5).double())
    assert (found > 0).all()


def test_rollout_of_the_upper_layers_times_that_of_the_lower_ones_is_the_whole(weights):
    torch.testing.assert_close(rollout(weights[1:]) @ rollout(weights[:1]), rollout(weights))


def test_a_place_that_sees_nothing_keeps_itself(weights):
    weights[:, :, 3] = 0.0
    torch.testing.assert_close(rollout(weights)[3], torch.eye(5).double()[3])


def test_places_that_only_look_at_themselves_stay_apart():
    own = torch.eye(4).double().expand(2, 3, 4, 4)
    torch.testing.assert_close(rollout(own), torch.eye(4).double())
    assert (relevance(own, torch.ones(2, 3, 4, 4).double()) == torch.eye(4) * 4).all()  # (1 + 1)²


def test_attention_without_effect_is_not_relevant(weights):
    torch.testing.assert_close(relevance(weights, torch.zeros_like(weights)), torch.eye(5).double())


def test_renaming_places_renames_the_maps(weights):
    torch.manual_seed(6)
    order, gradients = torch.tensor([3, 0, 4, 1, 2]), torch.randn_like(weights)
    moved, moved_gradients = (x[..., order, :][..., order] for x in (weights, gradients))
    torch.testing.assert_close(rollout(moved), rollout(weights)[order][:, order])
    torch.testing.assert_close(relevance(moved, moved_gradients), relevance(weights, gradients)[order][:, order])


# ---------------------------------------------------------------- recording
@pytest.fixture(params=["full", "linear"])
def model(request):
    colours = Normalisation(mean=(0.0,) * 3, std=(1.0,) * 3)
    lexicon = ImageLexicon(size=(6, 9), channels=3, normalisation=colours, labels=("a", "b", "c"))
    options = VitOptions(width=8, heads=2, feedforward=12, layers=3, patch=3, attention=request.param)
    return build_vit(options, lexicon, seed=4).eval()


IMAGE = torch.randn(1, 3, 6, 9, generator=torch.Generator().manual_seed(3))


def held(model, label):
    """The same from a model whose kernels are replaced by a plain product with weights that keep their gradients."""
    kept = []

    def plain(module, inputs, _output):
        weights = module.weights(*inputs)
        weights.retain_grad()
        kept.append(weights)
        return weights @ inputs[1].values

    handles = [layer.attention.kernel.register_forward_hook(plain) for layer in model.encoder.layers]
    model(IMAGE.to(model.output.weight.dtype))[0, label].backward()
    for handle in handles:
        handle.remove()
    model.zero_grad()
    return torch.cat(kept).detach(), torch.cat([weights.grad for weights in kept])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])  # the second goes through the compiled kernel
def test_gradients_are_those_of_a_model_that_holds_its_weights(model, dtype):
    model, image = model.to(dtype), IMAGE.to(dtype)
    for label in (0, 2):
        weights, gradients = recorded_with_gradients(model, lambda label=label: model(image)[0, label])
        expected = held(model, label)
        assert expected[1].abs().max() > 1e-4
        # Gradients reach 16: products that are summed up in another order move small ones by a millionth of that.
        precision = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-12}
        torch.testing.assert_close(weights, expected[0], **precision)
        torch.testing.assert_close(gradients, expected[1], **precision)
        torch.testing.assert_close(recorded(model, lambda: model(image)), expected[0], **precision)


def test_in_the_last_layer_only_the_class_token_matters(model):
    _, gradients = recorded_with_gradients(model, lambda: model(IMAGE)[0, 1])
    assert gradients[-1, :, 0].any()
    assert not gradients[-1, :, 1:].any()
    assert gradients[0, :, 1:].any()


def test_recording_leaves_no_hook_and_no_gradient_behind(model):
    recorded(model, lambda: model(IMAGE))
    recorded_with_gradients(model, lambda: model(IMAGE)[0, 0])
    with pytest.raises(RuntimeError, match="stumbled"):
        recorded_with_gradients(model, stumble)
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def stumble():
    raise RuntimeError("stumbled")
