"""Tokens to vectors and back."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.initialise import normal_rows

LARGE = 1000  # rows of a table that cost more to clear and add than a batch has rows to look up


class TokenEmbedding(nn.Module):
    """s · E[token], with s = √d in Vaswani et al. 2017, §3.4: rows of length about 1 then match the sinusoids."""

    def __init__(self, vocab: int, width: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.table = normal_rows(nn.Embedding(vocab, width))

    def forward(self, tokens: Int[Tensor, "n t"]) -> Float[Tensor, "n t d"]:
        rows: Tensor = self.table(tokens)
        return rows if self.scale == 1.0 else rows * self.scale


class TiedOutput(nn.Module):
    """logits = E x + b with the very table of the embedding, unscaled; often without b. Press & Wolf 2017.

    The gradient that the table has from here is dense. What lookups in a large one give is therefore left sparse: rows
    to be added to it, not tables full of zeros.
    """

    def __init__(self, embedding: TokenEmbedding, bias: bool = False) -> None:
        super().__init__()
        self.table = embedding.table
        self.table.sparse = self.table.num_embeddings > LARGE
        self.bias = nn.Parameter(torch.zeros(embedding.table.num_embeddings)) if bias else None

    @property
    def weight(self) -> Float[Tensor, "vocab d"]:
        return self.table.weight

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, self.weight, self.bias)
