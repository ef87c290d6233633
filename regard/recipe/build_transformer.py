"""From the model section of a recipe to a Transformer."""

from typing import Any

import torch.nn.functional as F
from torch import nn

from regard.errors import RecipeError
from regard.layers.attention import CrossAttention, Kernel, SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.layers.experts import Gate, MixtureOfExperts
from regard.layers.feedforward import Activation, FeedForward, GatedFeedForward
from regard.layers.initialise import xavier
from regard.layers.kernels import Full, Linear, Window
from regard.layers.norm import LayerNorm, LayerNormOutside, RMSNorm
from regard.layers.positions import Added, Concatenated, Learned, Sinusoid, Unplaced
from regard.layers.relations import Alibi, Relation, RelativeBias, Rotary, Unrelated
from regard.layers.residual import Around, PostNorm, PreNorm
from regard.models.interface import SequenceToSequence
from regard.models.transformer import DecoderLayer, EncoderLayer, Entrance, TransformerDecoder, TransformerEncoder
from regard.recipe.models import TransformerOptions

NORMS = {"layer": LayerNorm, "layer-outside": LayerNormOutside, "rms": RMSNorm}
ORDERS: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm}
TABLES = ("sinusoid", "learned")  # positions that join the input; the others act inside attention
PLAIN: dict[str, Activation] = {"relu": F.relu, "gelu": F.gelu}
GATED: dict[str, Activation] = {"swiglu": F.silu, "geglu": F.gelu, "reglu": F.relu}


def build_transformer(
    options: TransformerOptions, source_vocab: int, target_vocab: int, shared: bool
) -> SequenceToSequence:
    """`shared` says that both sides have one vocabulary; only then can `share_embeddings` have an effect."""
    refuse_impossible(options)
    parts = Parts(options)
    source = parts.embedding(source_vocab)
    target = source if shared and options.share_embeddings else parts.embedding(target_vocab)
    encoder = TransformerEncoder(
        parts.entrance(source),
        parts.relation(causal=False),
        [parts.encoder_layer() for _ in range(options.encoder_layers)],
        parts.last_norm(),
    )
    decoder = TransformerDecoder(
        parts.entrance(target),
        parts.relation(causal=True),
        [parts.decoder_layer() for _ in range(options.decoder_layers)],
        parts.last_norm(),
        TiedOutput(target) if options.tie_output else xavier(nn.Linear(options.width, target_vocab)),
    )
    return SequenceToSequence(encoder, decoder)


class Parts:
    """Each choice of the options as a finished part."""

    def __init__(self, options: TransformerOptions) -> None:
        self.options = options
        self.head_width = options.head_width or options.width // options.heads
        self.position_width = position_width(options)

    def embedding(self, vocab: int) -> TokenEmbedding:
        width = self.options.width - self.position_width
        return TokenEmbedding(vocab, width, width**0.5 if self.options.scale_embedding else 1.0)

    def entrance(self, embedding: TokenEmbedding) -> Entrance:
        return Entrance(embedding, self.positions(), Dropout(self.options.dropout))

    def positions(self) -> nn.Module:
        o = self.options
        if o.positions not in TABLES:
            return Unplaced()
        width = self.position_width or o.width
        learned = o.positions == "learned"
        table = Learned(o.max_length, width) if learned else Sinusoid(o.max_length, width, o.position_base)
        return Concatenated(table) if self.position_width else Added(table)

    def relation(self, causal: bool) -> Relation:
        o = self.options
        match o.positions:
            case "relative":
                return RelativeBias(o.heads, causal)
            case "rotary":
                return Rotary(o.max_length, self.head_width, o.position_base)
            case "alibi":
                return Alibi(o.heads)
            case _:
                return Unrelated()

    def norm(self) -> nn.Module:
        return NORMS[self.options.norm](self.options.width)

    def last_norm(self) -> nn.Module:
        return self.norm() if self.options.order == "pre" else nn.Identity()

    def around(self) -> Around:
        return ORDERS[self.options.order](self.norm(), Dropout(self.options.dropout))

    def feedforward(self) -> nn.Module:
        o = self.options
        if o.experts is None:
            return self.expert()
        gate = Gate(o.width, o.experts, o.active, o.balance)
        return MixtureOfExperts(gate, [self.expert() for _ in range(o.experts)])

    def expert(self) -> nn.Module:
        o = self.options
        if o.activation in PLAIN:
            return FeedForward(o.width, o.feedforward, PLAIN[o.activation])
        return GatedFeedForward(o.width, o.feedforward, GATED[o.activation])

    def kernel(self, causal: bool) -> Kernel[Any]:
        o = self.options
        match o.attention:
            case "full":
                return Full(causal, o.attention_dropout)
            case "window":
                return Window(causal, o.window, o.attention_dropout)
            case "linear":
                return Linear(causal)

    def self_attention(self, causal: bool) -> SelfAttention:
        o = self.options
        return SelfAttention(o.width, o.heads, self.head_width, self.kernel(causal))

    def encoder_layer(self) -> EncoderLayer:
        return EncoderLayer(self.self_attention(causal=False), self.feedforward(), self.around(), self.around())

    def decoder_layer(self) -> DecoderLayer:
        o = self.options
        cross = CrossAttention(o.width, o.heads, self.head_width, Full(causal=False, dropout=o.attention_dropout))
        around = [self.around() for _ in range(3)]
        return DecoderLayer(self.self_attention(causal=True), cross, self.feedforward(), around)


def position_width(options: TransformerOptions) -> int:
    """Width of what is concatenated to the embedding; 0 where nothing is."""
    if options.positions not in TABLES or options.position_join == "add":
        return 0
    return options.position_width or options.width // 4


def refuse_impossible(options: TransformerOptions) -> None:
    """Say which sizes and choices do not go together, before a layer trips over them."""
    refuse_sizes(options)
    refuse_concatenation(options)
    if options.experts is not None and options.active >= options.experts:
        raise RecipeError(
            f"model.active: {options.active} of {options.experts} experts leaves none to choose from; "
            f"use fewer, or raise model.experts above {options.active}"
        )
    if options.attention == "linear":
        if options.positions not in (*TABLES, "none"):
            raise RecipeError(
                f"model.positions: {options.positions} acts on pairs of tokens, which model.attention linear never "
                "forms; use sinusoid, learned or none"
            )
        if options.attention_dropout:
            raise RecipeError(
                f"model.attention_dropout: {options.attention_dropout} drops attention weights, which "
                "model.attention linear never forms; use 0"
            )


def refuse_sizes(options: TransformerOptions) -> None:
    width, heads = options.width, options.heads
    if options.head_width is None and width % heads:
        divisors = ", ".join(str(i) for i in range(1, min(width, 64) + 1) if width % i == 0)
        raise RecipeError(
            f"model.heads: {heads} does not divide model.width {width}; try {divisors}, or set model.head_width"
        )
    if options.positions == "rotary" and (head_width := options.head_width or width // heads) % 2:
        raise RecipeError(
            f"model.head_width: {head_width} is odd, but rotary positions turn pairs of numbers; use an even one"
        )
    if options.positions == "sinusoid" and options.position_join == "add" and width % 2:
        raise RecipeError(f"model.width: {width} is odd, but sinusoids come in pairs; use an even one")


def refuse_concatenation(options: TransformerOptions) -> None:
    if options.positions not in TABLES or options.position_join == "add":
        return
    place = position_width(options)
    if not 0 < place < options.width:
        raise RecipeError(
            f"model.position_width: {place} leaves {options.width - place} of model.width {options.width} "
            f"for the token; use 1 to {options.width - 1}"
        )
    if options.positions == "sinusoid" and place % 2:
        raise RecipeError(f"model.position_width: {place} is odd, but sinusoids come in pairs; use an even one")
    if options.tie_output:
        raise RecipeError(
            f"model.tie_output: an output layer of width {options.width} cannot be an embedding of width "
            f"{options.width - place} beside concatenated positions; set model.tie_output false"
        )
