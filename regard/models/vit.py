"""ViT: an image as a sequence of patches, and a class token that attends to them. Dosovitskiy et al. 2021."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.patches import GridPositions, PatchEmbedding
from regard.layers.relations import Relative
from regard.models.transformer import EncoderLayer


class ImageEntrance(nn.Module):
    """dropout([class token; W patch + b, …] + PE)."""

    def __init__(self, patches: PatchEmbedding, positions: GridPositions, dropout: nn.Module) -> None:
        super().__init__()
        self.patches, self.positions, self.dropout = patches, positions, dropout
        self.token = nn.Parameter(torch.empty(patches.dense.out_features))
        nn.init.normal_(self.token, std=0.02)

    def forward(self, images: Float[Tensor, "n c y x"]) -> Float[Tensor, "n k d"]:
        grid = self.patches.grid(images)
        token = self.token.expand(len(images), 1, -1)
        x: Tensor = self.dropout(torch.cat([token, self.patches(images)], 1) + self.positions(grid))
        return x


class VitEncoder(nn.Module):
    """The class token, then every patch, each after attending to all others.

    `norm` is the identity when layers end with their own.
    """

    def __init__(self, entrance: ImageEntrance, layers: Sequence[EncoderLayer], norm: nn.Module) -> None:
        super().__init__()
        self.entrance, self.layers, self.norm = entrance, nn.ModuleList(layers), norm

    def forward(self, images: Float[Tensor, "n c y x"]) -> Float[Tensor, "n k d"]:
        x = self.entrance(images)
        for layer in self.layers:
            x = layer(x, None, Relative())
        normal: Tensor = self.norm(x)
        return normal


class ImageClassifier(nn.Module):
    """logits of each class = W x₀ + b, with x₀ the class token."""

    def __init__(self, encoder: VitEncoder, output: nn.Linear) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output

    def features(self, images: Float[Tensor, "n c y x"]) -> Float[Tensor, "n k d"]:
        x: Tensor = self.encoder(images)
        return x

    def forward(self, images: Float[Tensor, "n c y x"]) -> Float[Tensor, "n classes"]:
        logits: Tensor = self.output(self.features(images)[:, 0])
        return logits
