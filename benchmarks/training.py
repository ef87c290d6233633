"""Our training step beside a plain loop around torch.nn.Transformer: the same shape, the same batches, in turns."""

import math
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.shape import SMOOTHING, Shape, model, task
from regard.layers.positions import sinusoids
from regard.tasks.translate import Batch, Translation
from regard.text.special import PAD
from regard.training.events import Stepped
from regard.training.loop import train
from regard.training.options import TrainingOptions

OPTIONS = TrainingOptions(steps=1_000_000, saves=1, validations=0)  # never reached: the clock runs step by step


class Plain(nn.Module):
    """What most people write first: torch's own Transformer, pre-norm, tied embeddings, sinusoids, padded logits."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        o = shape.model
        self.embedding = nn.Embedding(shape.vocabulary, o.width)
        nn.init.normal_(self.embedding.weight, std=o.width**-0.5)
        self.register_buffer("positions", sinusoids(o.max_length, o.width, o.position_base).float())
        self.dropout = nn.Dropout(o.dropout)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a fast path that serves inference only
            self.transformer = nn.Transformer(
                o.width,
                o.heads,
                o.encoder_layers,
                o.decoder_layers,
                o.feedforward,
                o.dropout,
                batch_first=True,
                norm_first=True,
            )
        for part in self.transformer.modules():
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = o.attention_dropout  # torch would drop weights too, which no fast kernel can

    def embed(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: tokens.shape[1]])

    def forward(self, batch: Batch) -> Tensor:
        features = self.transformer(
            self.embed(batch.source),
            self.embed(batch.inputs),
            tgt_mask=torch.ones(2 * batch.inputs.shape[1:], dtype=torch.bool).triu(1),
            src_key_padding_mask=~batch.source_mask,
            tgt_key_padding_mask=~batch.mask,
            memory_key_padding_mask=~batch.source_mask,
            tgt_is_causal=True,
        )
        return F.linear(features, self.embedding.weight)


def our_steps(shape: Shape, work: Translation, folder: Path) -> Callable[[int], int]:
    """The real training loop, one step a call; gives the target tokens of the step."""
    events = train(model(shape), work, OPTIONS, folder=folder, width=shape.model.width)

    def step(_index: int) -> int:
        return next(event.units for event in events if isinstance(event, Stepped))

    return step


def plain_steps(shape: Shape, work: Translation) -> Callable[[int], int]:
    torch.manual_seed(1)
    plain, plans = Plain(shape).train(), work.batches(0)
    adam = torch.optim.AdamW(
        plain.parameters(),
        lr=OPTIONS.learning_rate,
        betas=OPTIONS.betas,
        eps=OPTIONS.epsilon,
        weight_decay=OPTIONS.weight_decay,
        fused=True,
    )

    def step(index: int) -> int:
        batch = work.collate(plans[index], 0)
        adam.zero_grad()
        logits = plain(batch)
        targets = batch.targets.masked_fill(~batch.mask, PAD)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)
        loss.backward()
        nn.utils.clip_grad_norm_(plain.parameters(), OPTIONS.clip)
        adam.step()
        loss.item()  # our loop reads its loss too
        return int(batch.mask.sum())

    return step


def measure(shape: Shape) -> dict[str, float]:
    """Target tokens per second of both, medians over the same batches, and the median of their quotients."""
    work, speeds = task(shape), {"Regard": [], "torch.nn.Transformer": []}
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            "Regard": our_steps(shape, work, Path(folder)),
            "torch.nn.Transformer": plain_steps(shape, work),
        }
        for index in range(shape.warmup + shape.repeats):
            # Whoever goes first finds colder caches: the turns alternate.
            for name in sorted(sides, reverse=bool(index % 2)):
                began = time.perf_counter()
                tokens = sides[name](index)
                if index >= shape.warmup:
                    speeds[name].append(tokens / (time.perf_counter() - began))
    ours, theirs = speeds.values()
    figures = {f"training, target tokens/s: {name}": statistics.median(found) for name, found in speeds.items()}
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    return {**figures, "training, target tokens/s: ratio": ratio}
