import torch
from torch import nn

from regard.layers.norm import LayerNorm
from regard.layers.residual import PostNorm, PreNorm, Residual


def test_a_residual_adds_and_projects_only_where_widths_differ():
    z, same, wider = torch.randn(2, 3, 4), nn.Linear(4, 4), nn.Linear(4, 6)
    torch.testing.assert_close(Residual(same, 4, 4)(z), z + same(z))
    layer = Residual(wider, 4, 6)
    torch.testing.assert_close(layer(z), z @ layer.skip.weight.T + wider(z))
    assert Residual(same, 4, 4).skip is None


def test_pre_norm_is_f_of_norm_of_z_plus_z_and_post_norm_is_norm_of_f_of_z_plus_z():
    z, f, norm = torch.randn(2, 3, 4), nn.Linear(4, 4), LayerNorm(4)
    torch.testing.assert_close(PreNorm(norm, nn.Identity())(z, f), f(norm(z)) + z)
    torch.testing.assert_close(PostNorm(norm, nn.Identity())(z, f), norm(f(z) + z))


def test_dropout_acts_on_the_sub_layer_and_not_on_the_path_around_it():
    z, f, nothing = torch.randn(2, 3, 4), nn.Linear(4, 4), nn.Dropout(1.0)
    assert torch.equal(PreNorm(LayerNorm(4), nothing)(z, f), z)
    torch.testing.assert_close(PostNorm(LayerNorm(4), nothing)(z, f), LayerNorm(4)(z))
