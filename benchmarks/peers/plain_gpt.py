"""A character language model as one writes it down in torch: what `regard train` is timed against.

python -m benchmarks.peers.plain_gpt PLAN
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.turns import Turns

TRAINING = 0.9  # of the text, from its beginning


class Block(nn.Module):
    """Pre-norm: causal attention by torch's own function, then a feed-forward network."""

    def __init__(self, width: int, heads: int, feedforward: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.packed, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, feedforward), nn.GELU(), nn.Linear(feedforward, width))

    def forward(self, x: Tensor) -> Tensor:
        n, t, d = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2) for part in self.packed(self.first(x)).chunk(3, -1))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, d)
        x = x + self.output(found)
        return x + self.network(self.second(x))


class PlainGpt(nn.Module):
    """Learned positions, tied output."""

    def __init__(self, vocabulary: int, context: int, blocks: list[Block]) -> None:
        super().__init__()
        width = blocks[0].output.out_features
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(width)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean loss over all positions."""
        x = self.tokens(inputs) + self.places.weight[: inputs.shape[1]]
        logits = F.linear(self.norm(self.blocks(x)), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def characters(text: str) -> Tensor:
    """Every character by its place in the alphabet of the text."""
    place = {character: i for i, character in enumerate(sorted(set(text)))}
    return torch.tensor([place[character] for character in text])


def draw(text: Tensor, rows: int, context: int) -> tuple[Tensor, Tensor]:
    """Rows that begin anywhere, and what follows each of their characters."""
    firsts = torch.randint(len(text) - context, (rows, 1))
    found = text[firsts + torch.arange(context + 1)]
    return found[:, :-1], found[:, 1:]


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])
    torch.manual_seed(1)
    text = characters(Path(plan["text"]).read_text(encoding="utf-8"))
    vocabulary, training = int(text.max()) + 1, text[: int(TRAINING * len(text))]
    blocks = [Block(plan["width"], plan["heads"], plan["feedforward"]) for _ in range(plan["layers"])]
    model = PlainGpt(vocabulary, plan["context"], blocks)
    adam = torch.optim.AdamW(
        model.parameters(),
        lr=plan["learning_rate"],
        betas=tuple(plan["betas"]),
        weight_decay=plan["weight_decay"],
        fused=plan["fused"] or None,  # none: what torch does without being asked
    )
    turns = Turns(plan["steps"])
    while True:
        inputs, targets = draw(training, plan["rows"], plan["context"])
        adam.zero_grad()
        loss = model(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
        adam.step()
        loss.item()  # whoever trains looks at the loss
        turns.done(targets.numel())


if __name__ == "__main__":
    main()
