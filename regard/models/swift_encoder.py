"""The Transformer's encoder for inference: the same numbers with fewer copies, a few sentences at a time.

`TransformerEncoder` is the reference, and a test holds the two equal.
"""

from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.layers.attention import merge_heads
from regard.layers.feedforward import FeedForward
from regard.layers.relations import Relative, rotate
from regard.layers.residual import PreNorm
from regard.models.interface import Memory, no_summary
from regard.models.lean import IN_PLACE, Affine, Norm
from regard.models.transformer import EncoderLayer, TransformerEncoder

TOKENS = 1024  # of a few sentences: what a layer makes of them stays in the processor's cache


class SwiftEncoderLayer:
    """One encoder layer's weights, and what it does with m sentences of s tokens, row by row."""

    def __init__(self, layer: EncoderLayer) -> None:
        attention, feedforward = layer.attention, cast(FeedForward, layer.feedforward)
        self.heads, self.pre = attention.heads, isinstance(layer.around_attention, PreNorm)
        self.activation = IN_PLACE.get(feedforward.activation, feedforward.activation)
        self.attention_norm, self.feedforward_norm = (
            Norm.of(cast(Any, around)) for around in (layer.around_attention, layer.around_feedforward)
        )
        self.packed, self.output = Affine.of(attention.packed), Affine.of(attention.output)
        self.inner, self.outer = Affine.of(feedforward.inner), Affine.of(feedforward.outer)

    def __call__(
        self, x: Float[Tensor, "rows d"], shown: Bool[Tensor, "m 1 1 s"] | None, m: int, relative: Relative
    ) -> Float[Tensor, "rows d"]:
        """What the layer makes of x, which it writes over."""
        packed = self.packed(self.attention_norm(x) if self.pre else x)
        q, k, v = packed.view(m, len(x) // m, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if relative.angles is not None:
            q, k = rotate(q, relative.angles), rotate(k, relative.angles)
        seen = merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=shown))
        x = self.output.onto(x, seen.flatten(0, 1))
        x = x if self.pre else self.attention_norm(x)
        x = self.outer.onto(x, self.activation(self.inner(self.feedforward_norm(x) if self.pre else x)))
        return x if self.pre else self.feedforward_norm(x)


class SwiftEncoder:
    """A TransformerEncoder of full attention, layer norms and plain feed-forward layers."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        self.entrance, self.relation, self.norm = encoder.entrance, encoder.relation, encoder.norm
        self.layers = [SwiftEncoderLayer(cast(EncoderLayer, layer)) for layer in encoder.layers]

    def __call__(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        few = max(1, TOKENS // max(tokens.shape[1], 1))
        parts = zip(torch.split(tokens, few), torch.split(mask, few), strict=True)
        values = torch.cat([self.values(*part) for part in parts])
        return Memory(values, mask, no_summary(values))

    def values(self, tokens: Int[Tensor, "m s"], mask: Bool[Tensor, "m s"]) -> Float[Tensor, "m s d"]:
        relative, shown = self.relation(tokens.shape[1], 0), None if bool(mask.all()) else mask[:, None, None]
        entered = self.entrance(tokens, 0)
        x = entered.flatten(0, 1)
        for layer in self.layers:
            x = layer(x, shown, len(tokens), relative)
        values: Tensor = self.norm(x.view_as(entered))
        return values
