"""From the model section of a recipe to a GPT."""

from regard.models.gpt import Gpt, Nothing
from regard.models.interface import SequenceToSequence
from regard.recipe.build_placed import PlacedParts, refuse_unplaceable
from regard.recipe.build_stack import StackParts
from regard.recipe.models import GptOptions


def build_gpt(options: GptOptions, vocab: int) -> SequenceToSequence:
    """A decoder behind an encoder that reads nothing, so that all that searches, samples and scores can use it."""
    refuse_unplaceable(options)
    stack, placed = StackParts(options), PlacedParts(options)
    embedding = placed.embedding(vocab)
    layers = [stack.encoder_layer(True, heads, stack.feedforward) for heads in options.heads_of("decoder")]
    gpt = Gpt(
        placed.entrance(embedding), placed.relation(causal=True), layers, stack.last_norm(), placed.output(embedding)
    )
    return SequenceToSequence(Nothing(), gpt)
