"""From the options of the two convolutional families to their models."""

from torch import nn

from regard.errors import RecipeError
from regard.layers.convolution import DilatedBlock, GatedConvolution
from regard.layers.dropout import Dropout
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.layers.initialise import xavier
from regard.layers.norm import LayerNorm
from regard.layers.positions import Added, Learned
from regard.layers.scores import Attention, Dot
from regard.models.bytenet import ByteNetDecoder, ByteNetEncoder
from regard.models.convs2s import ConvS2SDecoder, ConvS2SEncoder, ConvS2SLayer
from regard.models.interface import OutputLayer, SequenceToSequence
from regard.models.transformer import Entrance
from regard.recipe.models import ByteNetOptions, ConvS2SOptions

Options = ByteNetOptions | ConvS2SOptions


def build_bytenet(options: ByteNetOptions, source_vocab: int, target_vocab: int, shared: bool) -> SequenceToSequence:
    """`shared` says that both sides have one vocabulary; only then can `share_embeddings` have an effect."""
    refuse_even_taps(options)
    if options.width % 2:
        raise RecipeError(f"model.width: {options.width} is odd, but blocks are half as wide inside; use an even one")
    source, target = embeddings(options, source_vocab, target_vocab, shared, scale=options.width**0.5)
    dropout = Dropout(options.dropout)

    def blocks(rounds: int) -> list[DilatedBlock]:
        return [DilatedBlock(options.width, options.taps, rate, dropout) for rate in options.rates * rounds]

    encoder = ByteNetEncoder(source, blocks(options.encoder_rounds), LayerNorm(options.width), dropout, options.stretch)
    last = output(options, target, target_vocab)
    decoder = ByteNetDecoder(target, blocks(options.decoder_rounds), LayerNorm(options.width), dropout, last)
    return SequenceToSequence(encoder, decoder)


def build_convs2s(options: ConvS2SOptions, source_vocab: int, target_vocab: int, shared: bool) -> SequenceToSequence:
    """`shared` says that both sides have one vocabulary; only then can `share_embeddings` have an effect."""
    refuse_even_taps(options)
    width, dropout = options.width, Dropout(options.dropout)
    # Unscaled: tokens and positions begin equally large, as both tables of the paper do.
    source, target = embeddings(options, source_vocab, target_vocab, shared, scale=1.0)

    def entrance(embedding: TokenEmbedding) -> Entrance:
        return Entrance(embedding, Added(Learned(options.max_length, width)), dropout)

    def linear() -> nn.Linear:
        return xavier(nn.Linear(width, width))

    def convolution() -> GatedConvolution:
        return GatedConvolution(width, options.taps, dropout, 1 - options.dropout)

    encoder = ConvS2SEncoder(
        entrance(source), linear(), [convolution() for _ in range(options.encoder_layers)], linear()
    )
    layers = [
        ConvS2SLayer(convolution(), linear(), Attention(Dot(), nn.Identity()), linear())
        for _ in range(options.decoder_layers)
    ]
    last = output(options, target, target_vocab)
    decoder = ConvS2SDecoder(entrance(target), linear(), layers, nn.Sequential(linear(), dropout), last)
    return SequenceToSequence(encoder, decoder)


def embeddings(
    options: Options, source_vocab: int, target_vocab: int, shared: bool, scale: float
) -> tuple[TokenEmbedding, TokenEmbedding]:
    """The tables of both sides; one for both where vocabulary and recipe allow it."""
    source = TokenEmbedding(source_vocab, options.width, scale)
    together = shared and options.share_embeddings
    return source, source if together else TokenEmbedding(target_vocab, options.width, scale)


def output(options: Options, target: TokenEmbedding, target_vocab: int) -> OutputLayer:
    return TiedOutput(target) if options.tie_output else xavier(nn.Linear(options.width, target_vocab))


def refuse_even_taps(options: Options) -> None:
    if options.taps % 2 == 0:
        raise RecipeError(
            f"model.taps: {options.taps} is even, but an encoder's convolution looks equally far to both sides; "
            f"use {options.taps - 1} or {options.taps + 1}"
        )
