import torch
from torch import nn

from regard.layers.dropout import Dropout
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
    torch.testing.assert_close(PreNorm(norm, Dropout(0.0))(z, f), f(norm(z)) + z)
    torch.testing.assert_close(PostNorm(norm, Dropout(0.0))(z, f), norm(f(z) + z))


def test_dropout_acts_on_the_sub_layer_and_not_on_the_path_around_it():
    z, f, norm, dropout = torch.randn(2, 3, 4), nn.Linear(4, 4), LayerNorm(4), Dropout(0.5)

    def drawn(compute):
        torch.manual_seed(3)
        return compute()

    expected = drawn(lambda: z + dropout(f(norm(z))))
    torch.testing.assert_close(drawn(lambda: PreNorm(norm, dropout)(z, f)), expected)
    torch.testing.assert_close(drawn(lambda: PostNorm(norm, dropout)(z, f)), norm(drawn(lambda: z + dropout(f(z)))))
