"""What most people write first: torch.nn.Transformer in a loop. `python -m benchmarks.peers.plain_training PLAN`."""

import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers import loop
from benchmarks.peers.batches import PAD


def sinusoids(length: int, width: int) -> Tensor:
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Plain(nn.Module):
    """torch's own Transformer, pre-norm, tied embeddings, sinusoids, padded logits."""

    def __init__(self, model: dict[str, Any], vocabulary: int) -> None:
        super().__init__()
        width = model["width"]
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.register_buffer("positions", sinusoids(model["max_length"], width))
        self.dropout = nn.Dropout(model["dropout"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a fast path that serves inference only
            self.transformer = nn.Transformer(
                width,
                model["heads"],
                model["encoder_layers"],
                model["decoder_layers"],
                model["feedforward"],
                model["dropout"],
                batch_first=True,
                norm_first=True,
            )
        for part in self.transformer.modules():
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = model["attention_dropout"]  # torch would drop weights too, which no fast kernel can

    def embed(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: tokens.shape[1]])

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        hidden = source.eq(PAD)
        features = self.transformer(
            self.embed(source),
            self.embed(inputs),
            tgt_mask=torch.ones(2 * inputs.shape[1:], dtype=torch.bool).triu(1),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,  # padding comes last, where the causal mask hides it from all real tokens
        )
        return F.linear(features, self.embedding.weight)


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])
    torch.manual_seed(1)
    model = Plain(plan["model"], plan["vocabulary"])
    loop.run(model, model, plan)


if __name__ == "__main__":
    main()
