"""transformers' MarianMT in a loop: `python -m benchmarks.peers.marian_training PLAN`, in its environment."""

import json
import sys
from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from benchmarks.peers import loop
from benchmarks.peers.batches import BOS, EOS, PAD


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])
    torch.manual_seed(1)
    shape = plan["model"]
    model = MarianMTModel(
        MarianConfig(
            vocab_size=plan["vocabulary"],
            d_model=shape["width"],
            encoder_layers=shape["encoder_layers"],
            decoder_layers=shape["decoder_layers"],
            encoder_attention_heads=shape["heads"],
            decoder_attention_heads=shape["heads"],
            encoder_ffn_dim=shape["feedforward"],
            decoder_ffn_dim=shape["feedforward"],
            dropout=shape["dropout"],
            attention_dropout=shape["attention_dropout"],
            activation_function=shape["activation"],
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=EOS,
            use_cache=False,
        )
    )

    def logits(source: Tensor, inputs: Tensor) -> Tensor:
        return model(input_ids=source, attention_mask=source.ne(PAD).long(), decoder_input_ids=inputs).logits

    loop.run(model, logits, plan)


if __name__ == "__main__":
    main()
