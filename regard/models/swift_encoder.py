"""The Transformer's encoder for inference: the same numbers with fewer copies, a few sentences at a time.

`TransformerEncoder` is the reference, and a test holds the two equal.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.attention import merge_heads
from regard.layers.feedforward import FeedForward
from regard.layers.relations import Relative, rotate
from regard.models.interface import Memory, no_summary
from regard.models.lean import Affine, Inner, Joint, joints
from regard.models.transformer import EncoderLayer, TransformerEncoder
from regard.native.inference import LayerWeights, Native, Weights

TOKENS = 1024  # of a few sentences: what a layer makes of them stays in the processor's cache
SHORT = 256  # tokens: attention over more is torch's, which never holds all pairs


class SwiftEncoderLayer:
    """One encoder layer's weights, and what it does with m sentences of s tokens, row by row."""

    def __init__(self, layer: EncoderLayer, joints: Sequence[Joint], native: Native) -> None:
        self.heads, self.packed = layer.attention.heads, Affine.of(layer.attention.packed, native)
        self.inner = Inner(cast(FeedForward, layer.feedforward), native)
        self.after_attention, self.after_feedforward = joints

    def weights(self) -> LayerWeights:
        """In the order in which they are met."""
        parts = ((self.packed, self.after_attention), (self.inner.affine, self.after_feedforward))
        return [(first.panels, joint.last.panels, joint.norm.gain, joint.norm.shift) for first, joint in parts]

    def __call__(
        self,
        x: Float[Tensor, "rows d"],
        y: Float[Tensor, "rows d"],
        shown: Bool[Tensor, "m 1 1 s"] | None,
        m: int,
        relative: Relative,
    ) -> Float[Tensor, "rows d"]:
        """What the next layer reads as y; the stream x is written over."""
        q, k, v = self.packed(y).view(m, len(x) // m, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if relative.angles is not None:
            q, k = rotate(q, relative.angles), rotate(k, relative.angles)
        seen = merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=shown))
        y = self.after_attention(x, seen.flatten(0, 1))
        return self.after_feedforward(x, self.inner(y))


class SwiftEncoder:
    """A TransformerEncoder of full attention, layer norms and plain feed-forward layers."""

    def __init__(self, encoder: TransformerEncoder, native: Native) -> None:
        layers = [cast(EncoderLayer, layer) for layer in encoder.layers]
        lasts, arounds = zip(*(part for layer in layers for part in parts(layer)), strict=True)
        self.first, joined = joints(lasts, arounds, encoder.norm, native)
        self.layers = [SwiftEncoderLayer(layer, joined[2 * i : 2 * i + 2], native) for i, layer in enumerate(layers)]
        self.entrance, self.relation, self.native = encoder.entrance, encoder.relation, native
        heads = {layer.heads for layer in self.layers}
        alike = len(heads) == 1 and all(layer.inner.activation is F.relu for layer in self.layers)
        weights = [layer.weights() for layer in self.layers]
        epsilon = joined[0].norm.epsilon
        self.weights = Weights(weights, heads.pop(), self.first is None, epsilon) if alike else None

    def __call__(self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        if self.weights and tokens.shape[1] <= SHORT:
            return self.at_once(self.weights, tokens, mask)
        few = max(1, TOKENS // max(tokens.shape[1], 1))
        parts = zip(torch.split(tokens, few), torch.split(mask, few), strict=True)
        values = torch.cat([self.cut(*part) for part in parts])
        return Memory(values, mask, no_summary(values))

    def at_once(self, weights: Weights, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"]) -> Memory:
        """All layers in one call, for real tokens alone; zeros stand where there are none."""
        entered, angles = self.entrance(tokens, 0), self.relation(tokens.shape[1], 0).angles
        x = entered[mask]
        y = self.first(x) if self.first else x.clone()
        starts = F.pad(mask.sum(1).cumsum(0), (1, 0))
        self.native.encode(x, y, weights, starts, None if angles is None else angles.expand(len(mask), -1, -1)[mask])
        values = torch.zeros_like(entered)
        values[mask] = y
        return Memory(values, mask, no_summary(values))

    def cut(self, tokens: Int[Tensor, "m s"], mask: Bool[Tensor, "m s"]) -> Float[Tensor, "m s d"]:
        """`values` without the last columns where none of these sentences has a token: zeros stand there."""
        used = int(mask.any(0).nonzero().amax()) + 1 if bool(mask.any()) else tokens.shape[1]
        return F.pad(self.values(tokens[:, :used], mask[:, :used]), (0, 0, 0, tokens.shape[1] - used))

    def values(self, tokens: Int[Tensor, "m s"], mask: Bool[Tensor, "m s"]) -> Float[Tensor, "m s d"]:
        relative, shown = self.relation(tokens.shape[1], 0), None if bool(mask.all()) else mask[:, None, None]
        entered = self.entrance(tokens, 0)
        x = entered.flatten(0, 1)
        y = self.first(x) if self.first else x
        for layer in self.layers:
            y = layer(x, y, shown, len(tokens), relative)
        return y.view_as(entered)


def parts(layer: EncoderLayer) -> list[tuple[nn.Linear, Any]]:
    """The last product of each sub-layer, and what is around it."""
    feedforward = cast(FeedForward, layer.feedforward)
    return [(layer.attention.output, layer.around_attention), (feedforward.outer, layer.around_feedforward)]
