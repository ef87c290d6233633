"""From the model section of a recipe to a ViT."""

import math

import torch
from torch import nn

from regard.data.image_lexicon import ImageLexicon
from regard.errors import RecipeError
from regard.layers.dropout import Dropout
from regard.layers.initialise import xavier
from regard.layers.patches import GridPositions, PatchEmbedding
from regard.models.vit import ImageClassifier, ImageEntrance, VitEncoder
from regard.recipe.build_stack import StackParts, refuse_heads, refuse_linear
from regard.recipe.models import VitOptions


def build_vit(options: VitOptions, lexicon: ImageLexicon, *, seed: int) -> ImageClassifier:
    """A fresh model for such images and labels; its first weights are a function of the seed alone."""
    refuse_unseeable(options, lexicon.size)
    stack, (rows, columns) = StackParts(options), lexicon.size
    grid = rows // options.patch, columns // options.patch
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        patches = PatchEmbedding(lexicon.channels, options.patch, options.width)
        entrance = ImageEntrance(patches, GridPositions(grid, options.width), Dropout(options.dropout))
        layers = [stack.encoder_layer(False, heads, stack.feedforward) for heads in options.heads_of("encoder")]
        encoder = VitEncoder(entrance, layers, stack.last_norm())
        return ImageClassifier(encoder, xavier(nn.Linear(options.width, len(lexicon.labels))))


def refuse_unseeable(options: VitOptions, size: tuple[int, int]) -> None:
    """Say which sizes and choices do not go together, before a layer trips over them."""
    refuse_heads(options)
    refuse_linear(options)
    if options.attention == "window":
        raise RecipeError(
            "model.attention: window would hide most patches from the class token, which stands before the first; "
            "use full or linear"
        )
    rows, columns = size
    if rows % options.patch or columns % options.patch:
        raise RecipeError(
            f"model.patch: {options.patch} does not divide images of {rows} × {columns} pixels; "
            f"try {', '.join(map(str, common_divisors(size)))}, or set data.images.size"
        )


def common_divisors(size: tuple[int, int]) -> list[int]:
    """Every side of a square that tiles such images."""
    both = math.gcd(*size)
    return [side for side in range(1, both + 1) if both % side == 0]
