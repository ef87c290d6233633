"""The limit: how fast this machine multiplies matrices at best, and how many operations a training step needs."""

from collections.abc import Iterable
from dataclasses import dataclass

from regard.recipe.models import TransformerOptions


@dataclass(frozen=True)
class Cost:
    """Floating-point operations of a Transformer's matrix products, forward; a multiplication and an addition are two.

    Embeddings look up and cost nothing. Attention is counted dense: Q Kᵀ and A V, 2·2·q·k·d for each of them together.
    """

    model: TransformerOptions
    vocabulary: int

    def forward(self, source: int, target: int) -> int:
        """Of one sentence pair, end tokens counted on both sides."""
        o = self.model
        d = o.width
        feedforward = 4 * d * o.feedforward
        encoder = source * (8 * d * d + feedforward) + 4 * source * source * d
        cross = target * 4 * d * d + source * 4 * d * d + 4 * target * source * d
        decoder = target * (8 * d * d + feedforward) + 4 * target * target * d + cross
        return o.encoder_layers * encoder + o.decoder_layers * decoder + 2 * target * d * self.vocabulary

    def training(self, source: int, target: int) -> int:
        """The backward pass multiplies twice as much: once for the inputs, once for the weights."""
        return 3 * self.forward(source, target)

    def per_target_token(self, lengths: Iterable[tuple[int, int]]) -> float:
        """Of training, over a corpus of (source, target) lengths."""
        pairs = list(lengths)
        return sum(self.training(*pair) for pair in pairs) / sum(target for _, target in pairs)
