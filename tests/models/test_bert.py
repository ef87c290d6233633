"""BERT's laws: who sees whom, what padding is, and what its heads compute. tests/published holds it to transformers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.errors import DecodingError
from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.layers.feedforward import FeedForward
from regard.layers.kernels import Full
from regard.layers.norm import LayerNorm
from regard.layers.positions import Added, Learned, Unplaced
from regard.layers.relations import Rotary, Unrelated
from regard.layers.residual import PostNorm, PreNorm
from regard.models.bert import (
    BertEncoder,
    MaskedHead,
    MaskedLanguageModel,
    Pooler,
    SegmentedEntrance,
    TextClassifier,
    pooled_mean,
)
from regard.models.transformer import EncoderLayer

VOCAB, WIDTH = 11, 8
TOKENS = torch.tensor([[2, 5, 9, 3, 6, 3], [2, 7, 3, 0, 0, 0]])
MASK = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
SEGMENTS = torch.tensor([[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0]])


def encoder(order, placed=True):
    def layer():
        around = (order(LayerNorm(WIDTH), Dropout(0.1)) for _ in range(2))
        return EncoderLayer(SelfAttention(WIDTH, 2, 4, Full(causal=False)), FeedForward(WIDTH, 5, F.gelu), *around)

    positions = Added(Learned(9, WIDTH)) if placed else Unplaced()
    entrance = SegmentedEntrance(
        TokenEmbedding(VOCAB, WIDTH, 1.0), positions, nn.Embedding(2, WIDTH), LayerNorm(WIDTH), Dropout(0.1)
    )
    relation = Unrelated() if placed else Rotary(9, 4, 100.0)
    return BertEncoder(entrance, relation, [layer(), layer()], nn.Identity() if order is PostNorm else LayerNorm(WIDTH))


ORDERS = {"post": (PostNorm,), "pre": (PreNorm,), "pre, rotary": (PreNorm, False)}


@pytest.fixture(params=ORDERS)
def model(request):
    torch.manual_seed(31)
    inside = encoder(*ORDERS[request.param])
    head = MaskedHead(WIDTH, F.gelu, LayerNorm(WIDTH), TiedOutput(inside.entrance.embedding, bias=True))
    return random(MaskedLanguageModel(inside, head))


def random(model):
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


@torch.no_grad()
def test_padding_is_invisible_whatever_stands_there(model):
    expected = model(TOKENS, MASK, SEGMENTS)
    other = model(TOKENS.masked_fill(~MASK, 8), MASK, SEGMENTS.masked_fill(~MASK, 1))
    torch.testing.assert_close(other[MASK], expected[MASK])
    alone = model(TOKENS[1:, :3], MASK[1:, :3], SEGMENTS[1:, :3])
    torch.testing.assert_close(alone[0], expected[1, :3])


@torch.no_grad()
def test_every_position_sees_every_token_and_every_segment(model):
    expected = model.features(TOKENS[:1], MASK[:1], SEGMENTS[:1])
    for place in range(6):
        tokens, segments = TOKENS[:1].clone(), SEGMENTS[:1].clone()
        tokens[0, place], segments[0, place] = 10, 1 - segments[0, place]
        for changed in (model.features(tokens, MASK[:1], SEGMENTS[:1]), model.features(TOKENS[:1], MASK[:1], segments)):
            assert ((changed - expected).abs().amax(-1) > 1e-9).all()


@torch.no_grad()
def test_the_head_is_its_equation_and_its_output_is_the_embedding(model):
    x, head = torch.randn(3, WIDTH, dtype=torch.float64), model.head
    table = model.encoder.entrance.embedding.table.weight
    hidden = head.norm(F.gelu(x @ head.dense.weight.mT + head.dense.bias))
    torch.testing.assert_close(head(x), hidden @ table.mT + head.output.bias)
    torch.testing.assert_close(head.output(head.transform(x)), head(x))


@torch.no_grad()
def test_logits_of_chosen_positions_are_those_of_all(model):
    chosen = torch.tensor([[False, True, False, False, True, False], [False, True, False, False, False, False]])
    features = model.features(TOKENS, MASK, SEGMENTS)
    torch.testing.assert_close(model.head(features[chosen]), model(TOKENS, MASK, SEGMENTS)[chosen])


@torch.no_grad()
def test_a_classifier_reads_the_first_position_alone():
    torch.manual_seed(32)
    model = random(TextClassifier(encoder(PostNorm), Pooler(WIDTH, 5), Dropout(0.5), nn.Linear(5, 3)))
    features = model.features(TOKENS, MASK, SEGMENTS)
    pooled = (features[:, 0] @ model.pooler.dense.weight.mT + model.pooler.dense.bias).tanh()
    expected = pooled @ model.output.weight.mT + model.output.bias
    torch.testing.assert_close(model(TOKENS, MASK, SEGMENTS), expected)
    features[:, 1:] = 7.0
    torch.testing.assert_close(model.pooler(features), pooled)


def test_the_mean_is_over_visible_positions_and_zero_where_there_are_none():
    x = torch.tensor([[[1.0, 2], [3, 6], [5, 5]], [[2, 4], [torch.inf, torch.nan], [4, 4]], [[1, 1], [1, 1], [1, 1]]])
    mask = torch.tensor([[True, True, True], [True, False, True], [False, False, False]])
    expected = torch.tensor([[3.0, 13 / 3], [3, 4], [0, 0]])
    torch.testing.assert_close(pooled_mean(x, mask), expected)


def test_gradients_reach_every_parameter(model):
    gradients = torch.autograd.grad(
        model(TOKENS, MASK, SEGMENTS).log_softmax(-1)[..., 4].sum(), list(model.parameters()), allow_unused=True
    )
    names = [name for name, _ in model.named_parameters()]
    assert [name for name, g in zip(names, gradients, strict=True) if g is None or not g.any()] == []


def test_a_text_longer_than_its_positions_is_refused():
    torch.manual_seed(33)
    long = torch.full((1, 10), 5)
    with pytest.raises(DecodingError, match="found a sequence of 10 tokens, but the model learned 9 positions"):
        encoder(PostNorm)(long, long > 0, torch.zeros_like(long))
