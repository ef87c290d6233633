"""From a trained model to the same model as fast as this package can run it."""

import torch

from regard.models.interface import SequenceToSequence
from regard.models.swift import SwiftDecoder
from regard.models.swift_encoder import SwiftEncoder
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.native.inference import native
from regard.recipe.models import ModelOptions, TransformerOptions

ACTIVATIONS = ("relu", "gelu", "gelu-tanh", "silu")
POSITIONS = ("sinusoid", "sinusoid-halves", "learned", "rotary", "none")


def for_inference(options: ModelOptions, model: SequenceToSequence) -> SequenceToSequence:
    """The same function, made for inference where the recipe allows: `SwiftEncoder`, `SwiftDecoder`; else the model.

    Both need the compiled part of this package, and weights of 32 bits in the processor's memory. The weights are
    copied: what is trained afterwards stays with the original.
    """
    if native is None or not isinstance(options, TransformerOptions) or not fits(options) or not plain(model):
        return model
    assert isinstance(model.decoder, TransformerDecoder)
    assert isinstance(model.encoder, TransformerEncoder)
    return SequenceToSequence(SwiftEncoder(model.encoder, native), SwiftDecoder(model.decoder, native))


def fits(options: TransformerOptions) -> bool:
    return (
        options.attention == "full"
        and options.experts is None
        and options.norm == "layer"
        and options.activation in ACTIVATIONS
        and options.positions in POSITIONS
    )


def plain(model: SequenceToSequence) -> bool:
    return all(weight.dtype == torch.float32 and weight.device.type == "cpu" for weight in model.parameters())
