"""From the model section of a recipe to a Transformer."""

from collections.abc import Sequence

from torch import nn

from regard.errors import RecipeError
from regard.layers.experts import Gate, MixtureOfExperts
from regard.models.interface import SequenceToSequence
from regard.models.transformer import DecoderLayer, EncoderLayer, TransformerDecoder, TransformerEncoder
from regard.recipe.build_placed import PlacedParts, refuse_unplaceable
from regard.recipe.build_stack import StackParts
from regard.recipe.models import TransformerOptions


def build_transformer(
    options: TransformerOptions, source_vocab: int, target_vocab: int, shared: bool
) -> SequenceToSequence:
    """`shared` says that both sides have one vocabulary; only then can `share_embeddings` have an effect."""
    refuse_impossible(options)
    parts, placed = Parts(options), PlacedParts(options)
    source = placed.embedding(source_vocab)
    target = source if shared and options.share_embeddings else placed.embedding(target_vocab)
    encoder = TransformerEncoder(
        placed.entrance(source),
        placed.relation(causal=False),
        [parts.encoder_layer(heads) for heads in options.heads_of("encoder")],
        parts.stack.last_norm(),
    )
    decoder = TransformerDecoder(
        placed.entrance(target),
        placed.relation(causal=True),
        list(map(parts.decoder_layer, options.heads_of("decoder"), options.heads_of("cross"))),
        parts.stack.last_norm(),
        placed.output(target),
    )
    return SequenceToSequence(encoder, decoder)


class Parts:
    """Each choice of the options as a finished layer."""

    def __init__(self, options: TransformerOptions) -> None:
        self.options, self.stack = options, StackParts(options)

    def feedforward(self) -> nn.Module:
        o = self.options
        if o.experts is None:
            return self.stack.feedforward()
        gate = Gate(o.width, o.experts, o.active, o.balance)
        return MixtureOfExperts(gate, [self.stack.feedforward() for _ in range(o.experts)])

    def encoder_layer(self, heads: Sequence[int]) -> EncoderLayer:
        return self.stack.encoder_layer(causal=False, heads=heads, network=self.feedforward)

    def decoder_layer(self, heads: Sequence[int], cross_heads: Sequence[int]) -> DecoderLayer:
        cross, around = self.stack.cross_attention(cross_heads), [self.stack.around() for _ in range(3)]
        return DecoderLayer(self.stack.self_attention(True, heads), cross, self.feedforward(), around)


def refuse_impossible(options: TransformerOptions) -> None:
    """Say which sizes and choices do not go together, before a layer trips over them."""
    refuse_unplaceable(options)
    if options.experts is not None and options.active >= options.experts:
        raise RecipeError(
            f"model.active: {options.active} of {options.experts} experts leaves none to choose from; "
            f"use fewer, or raise model.experts above {options.active}"
        )
