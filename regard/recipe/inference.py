"""From a trained model to the same model as fast as this package can run it."""

from regard.models.interface import SequenceToSequence
from regard.models.swift import SwiftDecoder
from regard.models.swift_encoder import SwiftEncoder
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.recipe.models import ModelOptions, TransformerOptions

ACTIVATIONS = ("relu", "gelu")
POSITIONS = ("sinusoid", "learned", "rotary", "none")


def for_inference(options: ModelOptions, model: SequenceToSequence) -> SequenceToSequence:
    """The same function, made for inference where the recipe allows: `SwiftEncoder`, `SwiftDecoder`; else the model.

    The weights are copied: what is trained afterwards stays with the original.
    """
    if not isinstance(options, TransformerOptions) or not fits(options):
        return model
    assert isinstance(model.decoder, TransformerDecoder)
    assert isinstance(model.encoder, TransformerEncoder)
    return SequenceToSequence(SwiftEncoder(model.encoder), SwiftDecoder(model.decoder))


def fits(options: TransformerOptions) -> bool:
    return (
        options.attention == "full"
        and options.experts is None
        and options.norm == "layer"
        and options.activation in ACTIVATIONS
        and options.positions in POSITIONS
    )
