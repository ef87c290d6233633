"""Patches and ViT's laws. tests/published holds it to transformers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.errors import DataError
from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feedforward import FeedForward
from regard.layers.kernels import Full
from regard.layers.norm import LayerNorm
from regard.layers.patches import GridPositions, PatchEmbedding, patches, resized
from regard.layers.residual import PreNorm
from regard.models.transformer import EncoderLayer
from regard.models.vit import ImageClassifier, ImageEntrance, VitEncoder

WIDTH, CHANNELS, SIZE, CLASSES = 6, 2, 3, 4


def layer():
    around = (PreNorm(LayerNorm(WIDTH), Dropout(0.0)) for _ in range(2))
    return EncoderLayer(SelfAttention(WIDTH, 2, 3, Full(causal=False)), FeedForward(WIDTH, 5, F.gelu), *around)


@pytest.fixture
def model():
    torch.manual_seed(41)
    entrance = ImageEntrance(PatchEmbedding(CHANNELS, SIZE, WIDTH), GridPositions((2, 3), WIDTH), Dropout(0.0))
    encoder = VitEncoder(entrance, [layer(), layer()], LayerNorm(WIDTH))
    model = ImageClassifier(encoder, nn.Linear(WIDTH, CLASSES)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


# ---------------------------------------------------------------- patches
def test_patches_are_tiles_row_by_row_channel_by_channel():
    image = torch.arange(16.0).reshape(1, 1, 2, 8)
    both = torch.cat([image, image + 100], 1)
    found = patches(both, 2)
    assert found.shape == (1, 4, 8)
    assert found[0, 1].tolist() == [2, 3, 10, 11, 102, 103, 110, 111]


def test_a_linear_layer_over_patches_is_a_strided_convolution():
    torch.manual_seed(1)
    images, embed = torch.randn(2, CHANNELS, 6, 9).double(), PatchEmbedding(CHANNELS, SIZE, WIDTH).double()
    kernel = embed.dense.weight.unflatten(1, (CHANNELS, SIZE, SIZE))
    expected = F.conv2d(images, kernel, embed.dense.bias, stride=SIZE).flatten(2).mT
    torch.testing.assert_close(embed(images), expected)
    assert embed.grid(images) == (2, 3)


@pytest.mark.parametrize("grid", [(2, 3), (1, 1), (4, 5), (1, 7)])
def test_stretched_positions_of_a_constant_table_are_constant(grid):
    table = torch.tensor([[1.0, -2.0]]).repeat(6, 1).double()
    torch.testing.assert_close(resized(table, (2, 3), grid), table[:1].repeat(grid[0] * grid[1], 1))


def test_the_own_grid_is_not_stretched_and_the_class_token_never_is():
    positions = GridPositions((2, 3), WIDTH)
    assert torch.equal(positions((2, 3)), positions.table)
    assert torch.equal(positions((4, 1))[0], positions.table[0])
    assert torch.equal(resized(positions.table[1:], (2, 3), (2, 3)), positions.table[1:])


def test_stretching_keeps_rows_apart_from_columns():
    """A table that changes from row to row alone still does so on another grid."""
    table = torch.arange(3.0)[:, None].repeat_interleave(2, 0)  # a grid of 3 × 2
    stretched = resized(table, (3, 2), (5, 4)).reshape(5, 4)
    torch.testing.assert_close(stretched, stretched[:, :1].expand(5, 4))
    assert (stretched[1:, 0] > stretched[:-1, 0]).all()


# ---------------------------------------------------------------- the model
@torch.no_grad()
def test_a_batch_of_many_equals_one_by_one(model):
    images = torch.randn(3, CHANNELS, 6, 9).double()
    torch.testing.assert_close(torch.cat([model(image[None]) for image in images]), model(images))


@torch.no_grad()
def test_the_head_reads_the_class_token_and_that_sees_every_patch(model):
    images = torch.randn(1, CHANNELS, 6, 9).double()
    logits = model(images)
    torch.testing.assert_close(logits, model.output(model.features(images)[:, 0]))
    for y in range(0, 6, SIZE):
        for x in range(0, 9, SIZE):
            changed = images.clone()
            changed[:, :, y + 1, x + 1] += 1
            assert ((model(changed) - logits).abs() > 1e-9).all()


@torch.no_grad()
def test_without_positions_the_order_of_patches_means_nothing(model):
    images = torch.randn(1, CHANNELS, 6, 9).double()
    mirrored = images.unflatten(3, (3, SIZE)).flip(3).flatten(3)  # columns of patches the other way round
    assert not torch.allclose(model(mirrored), model(images))
    model.encoder.entrance.positions.table.zero_()
    torch.testing.assert_close(model(mirrored), model(images))


def test_gradients_reach_every_parameter(model):
    names, parameters = zip(*model.named_parameters(), strict=True)
    for size in ((6, 9), (9, 12)):
        total = model(torch.randn(2, CHANNELS, *size).double()).log_softmax(-1)[:, 1].sum()
        gradients = torch.autograd.grad(total, parameters)
        assert [name for name, g in zip(names, gradients, strict=True) if not g.any()] == []


# ---------------------------------------------------------------- bad input
@pytest.mark.parametrize("size", [(7, 9), (6, 10), (2, 9), (0, 9), (1, 1)])
def test_an_image_that_patches_do_not_divide_is_refused(model, size):
    message = rf"^images: found {size[0]} × {size[1]} pixels, which patches of 3 × 3 do not divide; resize or crop"
    with pytest.raises(DataError, match=message):
        model(torch.zeros(1, CHANNELS, *size).double())


def test_an_image_of_other_channels_is_refused(model):
    with pytest.raises(DataError, match=r"^images: found 3 channels, the model reads 2; convert the images$"):
        model(torch.zeros(1, 3, 6, 9).double())
