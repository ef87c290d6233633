"""JoeyNMT's own trainer on our sentences: `python -m benchmarks.peers.joeynmt_training PLAN`, in its environment."""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from joeynmt.training import TrainManager, train

from benchmarks.peers.turns import Turns

NEVER = 10**9  # validations and log lines: none while the clock runs


def configuration(plan: dict[str, Any]) -> dict[str, Any]:
    """Its Transformer at our shape, pre-norm, everything tied; token batches as it makes them."""
    text, model = Path(plan["text"]), plan["model"]

    def side(language: str) -> dict[str, Any]:
        return {"lang": language, "level": "word", "voc_file": str(text / "vocabulary.txt"), "lowercase": False}

    def stack(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": model["heads"],
            "embeddings": {"embedding_dim": model["width"], "scale": True, "dropout": 0.0},
            "hidden_size": model["width"],
            "ff_size": model["feedforward"],
            "dropout": model["dropout"],
            "layer_norm": "pre",
        }

    return {
        "name": "bench",
        "joeynmt_version": "2.3.0",
        "model_dir": plan["work"],
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": str(text / "train"),
            "dev": str(text / "valid"),
            "dataset_type": "plain",
            "src": side("source"),
            "trg": side("target"),
        },
        "testing": {"batch_size": 100},
        "training": {
            "optimizer": "adamw",
            "adam_betas": plan["betas"],
            "learning_rate": plan["learning_rate"],
            "scheduling": "warmupinversesquareroot",
            "weight_decay": plan["weight_decay"],
            "clip_grad_norm": plan["clip"],
            "label_smoothing": plan["smoothing"],
            "normalization": "tokens",
            "batch_size": plan["batch_tokens"],
            "batch_type": "token",
            "epochs": NEVER,
            "logging_freq": NEVER,
            "validation_freq": NEVER,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "normal",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack(model["encoder_layers"]),
            "decoder": stack(model["decoder_layers"]),
        },
    }


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])
    Path(plan["work"]).mkdir(parents=True, exist_ok=True)
    their_step, turns = TrainManager._train_step, []

    def step(self: TrainManager, batch: Any) -> tuple[float, int]:
        turns or turns.append(Turns(plan["steps"]))
        found = their_step(self, batch)
        turns[0].done(batch.ntokens)
        return found

    TrainManager._train_step = step
    train(rank=0, world_size=1, cfg=configuration(plan), skip_test=True)


if __name__ == "__main__":
    main()
