"""BERT: one stack of attention in both directions, and the heads that read it. Devlin et al. 2019.

Which kernel, norm, order, activation and positions it has is decided by the parts it is given. The encoder has the
same parameter names under each head, so that what one head taught can be the start of another.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.feedforward import Activation
from regard.layers.initialise import xavier
from regard.layers.relations import Relation
from regard.models.interface import OutputLayer
from regard.models.transformer import EncoderLayer


class SegmentedEntrance(nn.Module):
    """dropout(LN(E[token] + PE + S[segment])): a token knows its place, and whether it is of the first text."""

    def __init__(
        self,
        embedding: nn.Module,
        positions: nn.Module,
        segments: nn.Embedding,
        norm: nn.Module,
        dropout: nn.Module,
    ) -> None:
        super().__init__()
        self.embedding, self.positions, self.segments = embedding, positions, segments
        self.norm, self.dropout = norm, dropout

    def forward(self, tokens: Int[Tensor, "n s"], segments: Int[Tensor, "n s"]) -> Float[Tensor, "n s d"]:
        x = self.positions(self.embedding(tokens), 0) + self.segments(segments)
        entered: Tensor = self.dropout(self.norm(x))
        return entered


class BertEncoder(nn.Module):
    """Every position after attending to all others; `norm` is the identity when layers end with their own."""

    def __init__(
        self, entrance: SegmentedEntrance, relation: Relation, layers: Sequence[EncoderLayer], norm: nn.Module
    ) -> None:
        super().__init__()
        self.entrance, self.relation, self.layers, self.norm = entrance, relation, nn.ModuleList(layers), norm

    def forward(
        self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"], segments: Int[Tensor, "n s"]
    ) -> Float[Tensor, "n s d"]:
        relative = self.relation(tokens.shape[1], 0)
        x = self.entrance(tokens, segments)
        for layer in self.layers:
            x = layer(x, mask, relative)
        normal: Tensor = self.norm(x)
        return normal


# ---------------------------------------------------------------- one word that is hidden
class MaskedHead(nn.Module):
    """logits = output(LN(a(W x + b))): which token belongs where x stands; BERT ties `output` to the embedding."""

    def __init__(self, width: int, activation: Activation, norm: nn.Module, output: OutputLayer) -> None:
        super().__init__()
        self.dense, self.activation, self.norm = xavier(nn.Linear(width, width)), activation, norm
        self.output = output

    def transform(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """All but the output layer, so that a loss need not form the logits of a whole batch."""
        y: Tensor = self.norm(self.activation(self.dense(x)))
        return y

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows vocab"]:
        return self.output(self.transform(x))


class MaskedLanguageModel(nn.Module):
    """For every position the logits of the token that belongs there.

    A loss over few positions takes those of `features` and calls `head` on them alone.
    """

    def __init__(self, encoder: BertEncoder, head: MaskedHead) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def features(
        self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"], segments: Int[Tensor, "n s"]
    ) -> Float[Tensor, "n s d"]:
        x: Tensor = self.encoder(tokens, mask, segments)
        return x

    def forward(
        self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"], segments: Int[Tensor, "n s"]
    ) -> Float[Tensor, "n s vocab"]:
        logits: Tensor = self.head(self.features(tokens, mask, segments))
        return logits


# ---------------------------------------------------------------- one vector for a whole text
def pooled_first(
    x: Float[Tensor, "n s d"], weight: Float[Tensor, "e d"], bias: Float[Tensor, " e"]
) -> Float[Tensor, "n e"]:
    """tanh(W x₀ + b): the first position, which stands for no word, speaks for all."""
    return F.linear(x[:, 0], weight, bias).tanh()


def pooled_mean(x: Float[Tensor, "n s d"], mask: Bool[Tensor, "n s"]) -> Float[Tensor, "n d"]:
    """Σ x / s over the s visible positions, and zeros where none is. Reimers & Gurevych 2019."""
    # Not a product with the mask: what stands in the padding may be infinite.
    total = x.masked_fill(~mask[..., None], 0.0).sum(1)
    return total / mask.sum(1, keepdim=True).clamp(min=1)


class Pooler(nn.Module):
    """Owns the weights of `pooled_first`."""

    def __init__(self, width: int, output_width: int) -> None:
        super().__init__()
        self.dense = xavier(nn.Linear(width, output_width))

    def forward(self, x: Float[Tensor, "n s d"]) -> Float[Tensor, "n e"]:
        return pooled_first(x, self.dense.weight, self.dense.bias)


class TextClassifier(nn.Module):
    """logits of each class = W dropout(pooled) + b."""

    def __init__(self, encoder: BertEncoder, pooler: Pooler, dropout: nn.Module, output: nn.Linear) -> None:
        super().__init__()
        self.encoder, self.pooler, self.dropout, self.output = encoder, pooler, dropout, output

    def features(
        self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"], segments: Int[Tensor, "n s"]
    ) -> Float[Tensor, "n s d"]:
        x: Tensor = self.encoder(tokens, mask, segments)
        return x

    def forward(
        self, tokens: Int[Tensor, "n s"], mask: Bool[Tensor, "n s"], segments: Int[Tensor, "n s"]
    ) -> Float[Tensor, "n classes"]:
        logits: Tensor = self.output(self.dropout(self.pooler(self.features(tokens, mask, segments))))
        return logits
