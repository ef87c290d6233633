"""ByteNet: columns of memory under the steps of a decoder that has no attention."""

import math

import pytest
import torch
import torch.nn.functional as F

from regard.errors import RecipeError
from regard.models.interface import Memory, no_summary
from regard.recipe.build_convolutional import build_bytenet
from regard.recipe.models import ByteNetOptions

SIZES = {"width": 6, "rates": (1, 2), "encoder_rounds": 1, "decoder_rounds": 1, "dropout": 0.0}
TOKENS = torch.tensor([[4, 7, 5, 6, 3], [8, 3, 0, 0, 0]])
MASK = TOKENS != 0
PREFIX = torch.tensor([[2, 5, 6, 4], [2, 7, 4, 4]])


def build(**chosen):
    torch.manual_seed(3)
    return build_bytenet(ByteNetOptions(**(SIZES | chosen)), 9, 8, False).double().eval()


def block_by_torch(block, x, padding):
    """One residual block by torch's own convolution; `padding` before and behind."""

    def a(x):
        return F.layer_norm(x, x.shape[-1:]).relu()

    conv, width = block.convolution, block.convolution.width
    inner = F.pad(a(block.narrow(a(x))).mT, padding)
    seen = F.conv1d(inner, conv.linear.weight.view(width, -1, width).mT, conv.linear.bias, dilation=conv.rate).mT
    return x + block.widen(a(seen))


def test_the_whole_model_is_its_equations():
    model = build()
    row, columns = TOKENS[:1], math.ceil(1.2 * 5)
    x = F.pad(model.encoder.embedding(row), (0, 0, 0, columns - 5))
    for block in model.encoder.blocks:
        x = block_by_torch(block, x, (block.convolution.rate,) * 2)
    memory = F.layer_norm(x, (6,))
    torch.testing.assert_close(model.encode(row, MASK[:1]).values, memory)
    y = model.decoder.embedding(PREFIX[:1]) + memory[:, :4]
    for block in model.decoder.blocks:
        y = block_by_torch(block, y, (2 * block.convolution.rate, 0))
    expected = F.layer_norm(y, (6,)) @ model.decoder.embedding.table.weight.mT
    torch.testing.assert_close(model(row, MASK[:1], PREFIX[:1]), expected)


@pytest.mark.parametrize(("stretch", "columns"), [(1.0, [5, 2]), (1.2, [6, 3]), (2.5, [13, 5])])
def test_every_source_has_columns_for_a_translation_that_is_longer_by_the_stretch(stretch, columns):
    assert build(stretch=stretch).encode(TOKENS, MASK).mask.sum(1).tolist() == columns


def test_a_step_reads_its_own_column_and_the_columns_before_it():
    """No attention: what stands in column t is for the steps from t on."""
    model = build()
    memory = model.encode(TOKENS, MASK)
    plain = model.decoder(PREFIX, model.decoder.begin(memory))[0]
    for column in range(4):
        values = memory.values.clone()
        values[:, column] = values[:, column].flip(-1)  # a norm would not see a constant
        changed = model.decoder(PREFIX, model.decoder.begin(Memory(values, memory.mask, memory.summary)))[0]
        assert [bool((changed[0, t] - plain[0, t]).abs().max() > 1e-9) for t in range(4)] == [
            t >= column for t in range(4)
        ]


def test_beyond_its_last_column_the_decoder_reads_zeros():
    model = build()
    values = torch.randn(1, 2, 6, dtype=torch.float64)
    short = Memory(values, torch.ones(1, 2, dtype=torch.bool), no_summary(values))
    long = F.pad(values, (0, 0, 0, 3))
    padded = Memory(long, torch.ones(1, 5, dtype=torch.bool), no_summary(values))
    ours, theirs = (model.decoder(PREFIX[:1], model.decoder.begin(memory))[0] for memory in (short, padded))
    torch.testing.assert_close(ours, theirs)


def test_what_a_step_remembers_does_not_grow():
    model = build(rates=(1, 2, 4))
    state = model.decoder.begin(model.encode(TOKENS, MASK))
    sizes = [tuple(seen.shape) for seen in state.past]
    assert sizes == [(2, 2, 3), (2, 4, 3), (2, 8, 3)]
    for token in PREFIX.split(1, 1):
        _, state = model.decoder(token, state)
    assert [tuple(seen.shape) for seen in state.past] == sizes


@pytest.mark.parametrize(
    ("chosen", "words"),
    [({"taps": 2}, r"model\.taps: 2 is even.*use 1 or 3"), ({"width": 7}, r"model\.width: 7 is odd")],
)
def test_an_impossible_bytenet_is_refused(chosen, words):
    with pytest.raises(RecipeError, match=words):
        build(**chosen)
