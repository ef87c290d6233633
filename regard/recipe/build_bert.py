"""From the model section of a recipe to BERT under each of its heads: the encoder is the same, name by name."""

import torch
from torch import nn

from regard.layers.dropout import Dropout
from regard.layers.embedding import TokenEmbedding
from regard.layers.initialise import normal_rows, xavier
from regard.models.bert import (
    BertEncoder,
    MaskedHead,
    MaskedLanguageModel,
    Pooler,
    SegmentedEntrance,
    TextClassifier,
)
from regard.recipe.build_placed import PlacedParts, refuse_unplaceable
from regard.recipe.build_stack import GATED, PLAIN, StackParts
from regard.recipe.models import BertOptions


def build_masked(options: BertOptions, vocab: int, seed: int) -> MaskedLanguageModel:
    """A fresh model that names hidden tokens; `vocab` counts the mask, which is the last id."""
    refuse_unplaceable(options)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        embedding = PlacedParts(options).embedding(vocab)
        encoder = build_encoder(options, embedding)
        # A gated activation has two inputs, and this layer one: its gate alone.
        activation = (PLAIN | GATED)[options.activation]
        output = PlacedParts(options).output(embedding)
        return MaskedLanguageModel(encoder, MaskedHead(options.width, activation, StackParts(options).norm(), output))


def build_classifier(options: BertOptions, vocab: int, classes: int, seed: int) -> TextClassifier:
    """A fresh model that sorts texts; its encoder begins as that of `build_masked` does with the same seed."""
    refuse_unplaceable(options)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = build_encoder(options, PlacedParts(options).embedding(vocab))
        pooler, output = Pooler(options.width, options.width), xavier(nn.Linear(options.width, classes))
        return TextClassifier(encoder, pooler, Dropout(options.dropout), output)


def build_encoder(options: BertOptions, embedding: TokenEmbedding) -> BertEncoder:
    stack, placed = StackParts(options), PlacedParts(options)
    segments = normal_rows(nn.Embedding(options.segments, options.width))
    entrance = SegmentedEntrance(embedding, placed.positions(), segments, stack.norm(), Dropout(options.dropout))
    layers = [stack.encoder_layer(False, heads, stack.feedforward) for heads in options.heads_of("encoder")]
    return BertEncoder(entrance, placed.relation(causal=False), layers, stack.last_norm())
