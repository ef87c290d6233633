"""The loop that most people write around a model: fused AdamW, clipped gradients, smoothed cross-entropy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.batches import PAD, forever
from benchmarks.peers.turns import Turns


def run(model: nn.Module, logits: Callable[[Tensor, Tensor], Tensor], plan: dict[str, Any]) -> None:
    """Trains until no more turns come; `logits` maps (source, decoder input) to (n, t, vocab)."""
    model.train()
    adam = torch.optim.AdamW(
        model.parameters(),
        lr=plan["learning_rate"],
        betas=tuple(plan["betas"]),
        weight_decay=plan["weight_decay"],
        fused=True,
    )
    turns = Turns(plan["steps"])
    for source, inputs, target in forever(Path(plan["text"]), plan["batch_tokens"]):
        adam.zero_grad()
        loss = F.cross_entropy(
            logits(source, inputs).flatten(0, 1),
            target.flatten(),
            ignore_index=PAD,
            label_smoothing=plan["smoothing"],
        )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
        adam.step()
        loss.item()  # whoever trains looks at the loss
        turns.done(int(target.ne(PAD).sum()))
