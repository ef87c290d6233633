"""First values of the weights: what every layer of the Transformer is built with."""

import torch
from torch import nn


def xavier(linear: nn.Linear, parts: int = 1) -> nn.Linear:
    """The same layer, W ~ U(−a, a) with a = √(6 / (fan_in + fan_out)) and b = 0.

    A packed layer holds `parts` matrices of equal size above one another, and each is drawn by its own fans.
    Glorot & Bengio 2010, eq. 16.
    """
    with torch.no_grad():
        for matrix in linear.weight.chunk(parts):
            nn.init.xavier_uniform_(matrix)
        if linear.bias is not None:
            linear.bias.zero_()
    return linear


def normal_rows(embedding: nn.Embedding) -> nn.Embedding:
    """The same table, each row ~ N(0, 1/d): unit variance once multiplied by √d, unit logits when tied."""
    nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
    return embedding
