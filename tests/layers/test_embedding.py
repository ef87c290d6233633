import pytest
import torch

from regard.layers import embedding as embedding_module
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.layers.initialise import xavier


def test_an_embedding_is_a_scaled_row_of_its_table():
    layer, tokens = TokenEmbedding(7, 4, scale=2.0), torch.tensor([[3, 0], [6, 3]])
    torch.testing.assert_close(layer(tokens), 2.0 * layer.table.weight[tokens])
    plain = TokenEmbedding(7, 4, scale=1.0)
    assert torch.equal(plain(tokens), plain.table.weight[tokens])


def test_a_scaled_embedding_starts_with_unit_variance():
    torch.manual_seed(10)
    width = 64
    vectors = TokenEmbedding(500, width, scale=width**0.5)(torch.arange(500)[None])
    assert abs(vectors.var().item() - 1.0) < 0.05


def test_a_tied_output_is_the_product_with_every_row_and_trains_the_same_weight():
    embedding = TokenEmbedding(7, 4, scale=2.0)
    output, x = TiedOutput(embedding), torch.randn(2, 3, 4)
    torch.testing.assert_close(output(x)[1, 2, 5], (x[1, 2] * embedding.table.weight[5]).sum())
    assert output.weight is embedding.table.weight
    assert output.bias is None


def test_each_part_of_a_packed_layer_is_drawn_by_its_own_fans():
    torch.manual_seed(11)
    layer = xavier(torch.nn.Linear(40, 3 * 60), parts=3)
    bound = (6 / (40 + 60)) ** 0.5
    for part in layer.weight.chunk(3):
        assert 0.95 * bound < part.abs().max().item() <= bound
    assert layer.bias.count_nonzero() == 0


def test_a_bias_of_a_tied_output_begins_at_zero_and_is_added():
    embedding, x = TokenEmbedding(7, 4, scale=2.0), torch.randn(2, 3, 4)
    output = TiedOutput(embedding, bias=True)
    assert torch.equal(output(x), TiedOutput(embedding)(x))
    with torch.no_grad():
        output.bias.copy_(torch.arange(7.0))
    torch.testing.assert_close(output(x) - TiedOutput(embedding)(x), torch.arange(7.0).expand(2, 3, 7))
    assert list(output.state_dict()) == ["bias", "table.weight"]


@pytest.mark.parametrize("large", [3, 1000])
def test_the_gradient_of_a_tied_table_is_that_of_a_plain_one(monkeypatch, large):
    torch.manual_seed(1)
    monkeypatch.setattr(embedding_module, "LARGE", large)
    embedding = TokenEmbedding(7, 3, scale=2.0)
    output, tokens = TiedOutput(embedding), torch.tensor([[1, 4], [4, 6]])
    output(embedding(tokens)).square().sum().backward()
    table = embedding.table.weight.detach().clone().requires_grad_()
    ((2.0 * table[tokens]) @ table.mT).square().sum().backward()
    assert not embedding.table.weight.grad.is_sparse
    torch.testing.assert_close(embedding.table.weight.grad, table.grad)
