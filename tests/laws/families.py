"""One table of model families. A new decoder, position kind or attention enters every law by one line here."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.layers.feedforward import FeedForward
from regard.layers.kernels import Full, Linear, Window
from regard.layers.norm import LayerNorm
from regard.layers.positions import Added, Learned, Unplaced
from regard.layers.relations import RelativeBias, Rotary, Unrelated
from regard.layers.residual import PostNorm, PreNorm
from regard.models.gpt import Gpt, Nothing
from regard.models.interface import Memory, SequenceToSequence
from regard.models.transformer import EncoderLayer, Entrance
from regard.recipe import build as building
from regard.recipe.models import ByteNetOptions, ConvS2SOptions, RecurrentOptions, TransformerOptions
from regard.text.special import PAD

SOURCE_VOCAB, TARGET_VOCAB = 9, 7


def recurrent(**chosen) -> RecurrentOptions:
    return RecurrentOptions(**({"embedding": 5, "width": 6, "dropout": 0.0} | chosen))


def transformer(**chosen) -> TransformerOptions:
    sizes = {"width": 12, "heads": 3, "feedforward": 7, "encoder_layers": 1, "decoder_layers": 1, "max_length": 24}
    return TransformerOptions(**(sizes | {"dropout": 0.0} | chosen))


def bytenet(**chosen) -> ByteNetOptions:
    return ByteNetOptions(
        **({"width": 10, "rates": (1, 2), "encoder_rounds": 1, "decoder_rounds": 1, "dropout": 0.0} | chosen)
    )


def convs2s(**chosen) -> ConvS2SOptions:
    sizes = {"width": 6, "encoder_layers": 2, "decoder_layers": 2, "max_length": 24, "dropout": 0.0}
    return ConvS2SOptions(**(sizes | chosen))


PRUNED = {"encoder": [[1, 3]], "decoder": [[2], [1, 2, 3]], "cross": [[3], [1, 2]]}  # of three heads each
ONE_WAY = {"bidirectional": False, "input_feeding": False}

FAMILIES = {
    "the decks' bottleneck": recurrent(cell="tanh", attention="none", **ONE_WAY),
    "the decks' simple attention": recurrent(cell="tanh", attention="dot", shared_cell=True, **ONE_WAY),
    "a shared GRU in two layers": recurrent(
        attention="dot", shared_cell=True, encoder_layers=2, decoder_layers=2, **ONE_WAY
    ),
    "the decks' parameterised attention": recurrent(cell="tanh", attention="parameterised", **ONE_WAY),
    "LSTM bottleneck, both ways": recurrent(cell="lstm", attention="none", input_feeding=False),
    "LSTM, scaled dot, fed": recurrent(
        cell="lstm", attention="scaled-dot", bidirectional=False, tie_output=True, embedding=6
    ),
    "LSTM, general, 2 and 3 layers": recurrent(cell="lstm", attention="general", encoder_layers=2, decoder_layers=3),
    "GRU, additive": recurrent(attention="additive", input_feeding=False),
    "GRU, additive, fed": recurrent(attention="additive"),
    "GRU, coverage": recurrent(coverage=True, input_feeding=False),
    "GRU, coverage, fed": recurrent(coverage=True, decoder_layers=2),
    "LSTM, parameterised, fed": recurrent(cell="lstm", attention="parameterised"),
    "residual LSTM, as in GNMT": recurrent(cell="lstm", encoder_layers=3, decoder_layers=3, stack="residual"),
    "residual GRU, one way, coverage": recurrent(
        encoder_layers=2, decoder_layers=4, stack="residual", coverage=True, bidirectional=False
    ),
    "residual LSTM, read from the top": recurrent(
        cell="lstm", attention="dot", encoder_layers=3, decoder_layers=3, stack="residual", input_feeding=False
    ),
    "fast-forward LSTM, as in Deep-Att": recurrent(
        cell="lstm", encoder_layers=3, decoder_layers=3, stack="fast-forward", embedding=18, tie_output=True
    ),
    "fast-forward tanh, parameterised": recurrent(
        cell="tanh", attention="parameterised", encoder_layers=2, decoder_layers=2, stack="fast-forward"
    ),
    "fast-forward GRU, dot, read from the top": recurrent(
        attention="dot", encoder_layers=2, decoder_layers=2, stack="fast-forward", input_feeding=False
    ),
    "ByteNet": bytenet(rates=(1, 2, 4), decoder_rounds=2),
    "ByteNet, stretched, five taps, untied": bytenet(taps=5, stretch=1.7, tie_output=False),
    "ConvS2S": convs2s(encoder_layers=3, decoder_layers=2),
    "ConvS2S, five taps, untied": convs2s(taps=5, tie_output=False),
    "Transformer": transformer(encoder_layers=2, decoder_layers=3),
    "Transformer, post-norm": transformer(order="post", encoder_layers=2, decoder_layers=2),
    "Transformer, ε outside the root": transformer(norm="layer-outside", activation="gelu"),
    "Transformer, RMS, SwiGLU": transformer(norm="rms", activation="swiglu"),
    "Transformer, GeGLU, untied": transformer(activation="geglu", tie_output=False, scale_embedding=False),
    "Transformer, narrow heads": transformer(head_width=2, activation="reglu"),
    "Transformer, experts": transformer(experts=3, active=2),
    "Transformer, three of four gated experts": transformer(experts=4, active=3, activation="swiglu"),
    "Transformer, no positions": transformer(positions="none"),
    "Transformer, learned positions": transformer(positions="learned"),
    "Transformer, relative bias": transformer(positions="relative"),
    "Transformer, rotary": transformer(positions="rotary"),
    "Transformer, ALiBi": transformer(positions="alibi"),
    "Transformer, concatenated sinusoids": transformer(position_join="concatenate", position_width=4, tie_output=False),
    "Transformer, concatenated learned": transformer(
        positions="learned", position_join="concatenate", position_width=5, tie_output=False
    ),
    "Transformer, window": transformer(attention="window", window=2, encoder_layers=2, decoder_layers=2),
    "Transformer, window, rotary": transformer(attention="window", window=1, positions="rotary"),
    "Transformer, linear": transformer(attention="linear"),
    "Transformer, linear, no positions": transformer(attention="linear", positions="none"),
    "Transformer, as T5": transformer(
        norm="rms",
        activation="geglu-tanh",
        bias=False,
        scale_embedding=False,
        positions="relative",
        position_buckets=6,
        position_farthest=5,
        output_bias=True,
    ),
    "Transformer, as Marian": transformer(
        order="post", activation="silu", positions="sinusoid-halves", norm_epsilon=0.1, output_bias=True
    ),
    "Transformer, pruned": transformer(decoder_layers=2, kept_heads=PRUNED),
    "Transformer, relative bias, pruned": transformer(decoder_layers=2, positions="relative", kept_heads=PRUNED),
    "Transformer, untied without any bias": transformer(
        activation="gelu-tanh", bias=False, tie_output=False, output_bias=False
    ),
}


def gpt(vocab: int, *, around=PreNorm, kernel=Full, relation=Unrelated, learned=True) -> SequenceToSequence:
    """A decoder that reads no memory, behind an encoder that gives none."""
    torch.manual_seed(13)
    embedding = TokenEmbedding(vocab, 12, 1.0)
    layers = [
        EncoderLayer(
            SelfAttention(12, 3, 4, kernel(causal=True)),
            FeedForward(12, 7, F.gelu),
            *(around(LayerNorm(12), Dropout(0.0)) for _ in range(2)),
        )
        for _ in range(2)
    ]
    entrance = Entrance(embedding, Added(Learned(24, 12)) if learned else Unplaced(), Dropout(0.0))
    norm = LayerNorm(12) if around is PreNorm else nn.Identity()
    return SequenceToSequence(Nothing(), Gpt(entrance, relation(), layers, norm, TiedOutput(embedding)))


SOURCELESS = {
    "GPT": gpt,
    "GPT, post-norm, linear": partial(gpt, around=PostNorm, kernel=Linear),
    "GPT, rotary, window": partial(
        gpt, kernel=partial(Window, size=2), relation=partial(Rotary, 24, 4, 100.0), learned=False
    ),
    "GPT, relative bias": partial(
        gpt, relation=partial(RelativeBias, 3, causal=True, buckets=6, farthest=5), learned=False
    ),
}
MODELS = (*FAMILIES, *SOURCELESS)


def build(name: str, target_vocab: int = TARGET_VOCAB) -> SequenceToSequence:
    """The family's model in float64, with weights large enough that everything has an effect."""
    if name in SOURCELESS:
        model = SOURCELESS[name](target_vocab)
    else:
        model = building.build(FAMILIES[name], SOURCE_VOCAB, target_vocab, shared=False, seed=13)
    model = model.double().eval()
    torch.manual_seed(13)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def pad(rows: list[list[int]], extra: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of tokens side by side, with `extra` columns of padding, and where they are visible."""
    width = max(map(len, rows)) + extra
    tokens = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    return tokens, torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]


def encode(model: SequenceToSequence, rows: list[list[int]]) -> Memory:
    return model.encode(*pad(rows))
