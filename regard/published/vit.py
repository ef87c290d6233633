"""ViT's published weights as those of a VitEncoder, a Pooler and an ImageClassifier. Dosovitskiy et al. 2021."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from regard.errors import ModelFormatError
from regard.published.config import Published, read
from regard.published.fields import OURS, Activation, Epsilon, Layers, check_heads, labels
from regard.published.layout import Entry, Fold, Layout, Made, Reshaped, Same, Stacked, linear, norm
from regard.recipe.models import Positive, Probability

Sides = Annotated[list[Positive], Field(min_length=2, max_length=2)]  # rows, columns


class VitConfig(Published):
    model_type: Literal["vit"]
    image_size: Positive | Sides = 224
    patch_size: Positive | Sides = 16
    num_channels: Positive = 3
    hidden_size: Positive
    num_attention_heads: Positive
    num_hidden_layers: Layers
    intermediate_size: Positive
    hidden_act: Activation = "gelu"
    layer_norm_eps: Epsilon = 1e-12
    hidden_dropout_prob: Probability = 0.0
    attention_probs_dropout_prob: Probability = 0.0
    qkv_bias: bool = True
    id2label: dict[str, str] | None = None
    pooler_act: Literal["tanh"] = "tanh"
    problem_type: Literal["single_label_classification"] | None = None


@dataclass(frozen=True)
class Sizes:
    """Everything that a builder needs: pre-norm, positions on a grid. `image` is rows and columns of pixels.

    `query_bias` says whether queries, keys and values have a bias; where they have none, ours is zeros. `labels` are
    the names of the classes, where the checkpoint has a classifier.
    """

    image: tuple[int, int]
    patch: int
    channels: int
    width: int
    heads: int
    layers: int
    feedforward: int
    activation: str
    epsilon: float
    dropout: float
    attention_dropout: float
    query_bias: bool
    labels: tuple[str, ...]

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.image[0] // self.patch, self.image[1] // self.patch


def sizes(config: Mapping[str, Any]) -> Sizes:
    """What the config says, in our words; ModelFormatError names what our model cannot be."""
    theirs = read(VitConfig, config)
    check_heads("num_attention_heads", theirs.num_attention_heads, theirs.hidden_size)
    image, patch = sides(theirs.image_size), sides(theirs.patch_size)
    if patch[0] != patch[1] or image[0] % patch[0] or image[1] % patch[0]:
        raise ModelFormatError(
            f"config.json: found image_size {image[0]} × {image[1]} and patch_size {patch[0]} × {patch[1]}, expected "
            "square patches that divide the image"
        )
    return Sizes(
        image=image,
        patch=patch[0],
        channels=theirs.num_channels,
        width=theirs.hidden_size,
        heads=theirs.num_attention_heads,
        layers=theirs.num_hidden_layers,
        feedforward=theirs.intermediate_size,
        activation=OURS[theirs.hidden_act],
        epsilon=theirs.layer_norm_eps,
        dropout=theirs.hidden_dropout_prob,
        attention_dropout=theirs.attention_probs_dropout_prob,
        query_bias=theirs.qkv_bias,
        labels=labels(theirs.id2label),
    )


def sides(size: int | list[int]) -> tuple[int, int]:
    """One number stands for both."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])


@dataclass(frozen=True)
class Held:
    """What a file holds beside the encoder, and what stands before the encoder's names."""

    prefix: str
    pooler: bool
    classifier: bool


def held(names: Collection[str]) -> Held:
    prefix = "vit." if any(name.startswith("vit.") for name in names) else ""
    return Held(prefix, f"{prefix}pooler.dense.weight" in names, "classifier.weight" in names)


def layout(sizes: Sizes, held: Held) -> Layout:
    """Ours are the names of an ImageClassifier (encoder, output), and `pooler` beside them."""
    theirs, width, places = f"{held.prefix}embeddings", sizes.width, 1 + sizes.grid[0] * sizes.grid[1]
    kernel = (width, sizes.channels, sizes.patch, sizes.patch)
    folds: dict[tuple[str, str], Fold] = {
        ("token", "cls_token"): Reshaped((1, 1, width), (width,)),
        ("patches.dense.weight", "patch_embeddings.projection.weight"): Reshaped(kernel, (width, -1)),
        ("patches.dense.bias", "patch_embeddings.projection.bias"): Same(),
        ("positions.table", "position_embeddings"): Reshaped((1, places, width), (places, width)),
    }
    layers = [(f"encoder.layers.{i}", f"{held.prefix}encoder.layer.{i}") for i in range(sizes.layers)]
    return [
        *(Entry(f"encoder.entrance.{our}", (f"{theirs}.{name}",), fold) for (our, name), fold in folds.items()),
        *(entry for names in layers for entry in layer(*names, sizes)),
        *norm("encoder.norm", f"{held.prefix}layernorm"),
        *(linear("pooler.dense", f"{held.prefix}pooler.dense") if held.pooler else []),
        *(linear("output", "classifier") if held.classifier else []),
    ]


def layer(ours: str, theirs: str, sizes: Sizes) -> list[Entry]:
    parts = [f"{theirs}.attention.attention.{part}" for part in ("query", "key", "value")]
    biases = tuple(f"{part}.bias" for part in parts) if sizes.query_bias else ()
    bias: Fold = Stacked(3) if sizes.query_bias else Made(torch.zeros(3 * sizes.width))
    return [
        *norm(f"{ours}.around_attention.norm", f"{theirs}.layernorm_before"),
        Entry(f"{ours}.attention.packed.weight", tuple(f"{part}.weight" for part in parts), Stacked(3)),
        Entry(f"{ours}.attention.packed.bias", biases, bias),
        *linear(f"{ours}.attention.output", f"{theirs}.attention.output.dense"),
        *norm(f"{ours}.around_feedforward.norm", f"{theirs}.layernorm_after"),
        *linear(f"{ours}.feedforward.inner", f"{theirs}.intermediate.dense"),
        *linear(f"{ours}.feedforward.outer", f"{theirs}.output.dense"),
    ]
