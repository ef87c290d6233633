"""Eole's own trainer on our sentences: `python -m benchmarks.peers.eole_training PLAN`, in its environment."""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.trainer import Trainer

from benchmarks.peers.turns import Turns

NEVER = 10**9  # checkpoints, validations and log lines: none while the clock runs


def configuration(plan: dict[str, Any]) -> dict[str, Any]:
    """Its Transformer at our shape; token batches cut from the whole corpus sorted by length, which pads least."""
    text, model = Path(plan["text"]), plan["model"]
    vocabulary = str(text / "vocabulary.txt")
    return {
        "seed": 1,
        "report_every": NEVER,
        "src_vocab": vocabulary,
        "tgt_vocab": vocabulary,
        "share_vocab": True,
        "src_vocab_size": plan["vocabulary"],
        "tgt_vocab_size": plan["vocabulary"],
        "overwrite": True,
        "save_data": plan["work"],
        "data": {
            "train": {
                "path_src": str(text / "train.source"),
                "path_tgt": str(text / "train.target"),
                "transforms": [],
                "weight": 1,
            }
        },
        "model": {
            "architecture": "transformer",
            "hidden_size": model["width"],
            "heads": model["heads"],
            "transformer_ff": model["feedforward"],
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_qkvbias": True,
            "add_ffnbias": True,
            "embeddings": {
                "word_vec_size": model["width"],
                "position_encoding": True,
                "position_encoding_type": "SinusoidalInterleaved",
            },
            "encoder": {"encoder_type": "transformer", "layers": model["encoder_layers"]},
            "decoder": {"decoder_type": "transformer", "layers": model["decoder_layers"]},
        },
        "training": {
            "model_path": plan["work"],
            "compute_dtype": "fp32",
            "param_init_method": "xavier_uniform",
            "optim": "adamw",
            "adam_beta1": plan["betas"][0],
            "adam_beta2": plan["betas"][1],
            "learning_rate": plan["learning_rate"],
            "weight_decay": plan["weight_decay"],
            "max_grad_norm": plan["clip"],
            "dropout": [model["dropout"]],
            "attention_dropout": [model["attention_dropout"]],
            "label_smoothing": plan["smoothing"],
            "normalization": "tokens",
            "batch_type": "tokens",
            "batch_size": plan["batch_tokens"],
            "bucket_size": plan["sentences"],
            "num_workers": 0,  # a worker process would compute during the turns of others
            "log_attention_entropy": False,  # costs time and serves a log line only
            "train_steps": NEVER,
            "save_checkpoint_steps": NEVER,
            "valid_steps": NEVER,
        },
    }


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])
    their_step, turns = Trainer._train_step, []

    def step(self: Trainer, batches: list[dict[str, Any]], *arguments: Any, **named: Any) -> None:
        turns or turns.append(Turns(plan["steps"]))
        their_step(self, batches, *arguments, **named)
        padding = self.train_loss.padding_idx
        turns[0].done(sum(int(batch["tgt"][:, 1:].ne(padding).sum()) for batch in batches))

    Trainer._train_step = step
    train(TrainConfig(**configuration(plan)))


if __name__ == "__main__":
    main()
