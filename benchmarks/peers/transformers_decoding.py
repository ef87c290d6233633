"""transformers' `generate` on our weights: `python -m benchmarks.peers.transformers_decoding PLAN`, in its environment.

MarianMT has its norms behind the residual and ours before it, so the weights are written into Pegasus: the same code
(each names the other as its origin), pre-norm, with a norm at the end of each stack.

Text in, text out. Asked {"beam": b} it translates all texts, asked {"source": …, "target": …} (ids) it gives log p of
each target token.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import PegasusConfig, PegasusForConditionalGeneration

from benchmarks.peers.batches import BOS, EOS, PAD, rectangle
from benchmarks.peers.plain_training import sinusoids
from benchmarks.peers.turns import Answers, serve
from benchmarks.peers.words import Words

BATCH_TOKENS = 4096  # cells of a source batch, each beam a row of its own; 2048 to 16384 were tried
NEVER = (PAD, 1, BOS)  # what no output may hold
NORMS = {"around_attention": "self_attn", "around_cross": "encoder_attn", "around_feedforward": "final"}


def architecture(plan: Mapping[str, Any]) -> PegasusForConditionalGeneration:
    shape = plan["model"]
    return PegasusForConditionalGeneration(
        PegasusConfig(
            vocab_size=plan["vocabulary"],
            max_position_embeddings=shape["max_length"],
            d_model=shape["width"],
            encoder_layers=shape["encoder_layers"],
            decoder_layers=shape["decoder_layers"],
            encoder_attention_heads=shape["heads"],
            decoder_attention_heads=shape["heads"],
            encoder_ffn_dim=shape["feedforward"],
            decoder_ffn_dim=shape["feedforward"],
            activation_function=shape["activation"],
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    ).eval()


def renamed(ours: Mapping[str, Tensor], model: Mapping[str, Any]) -> dict[str, Tensor]:
    """Our weights by their names."""
    table = ours["encoder.entrance.embedding.table.weight"]
    found = dict.fromkeys(("lm_head.weight", "model.shared.weight"), table)
    for stack in ("encoder", "decoder"):
        found[f"model.{stack}.embed_tokens.weight"] = table
        found[f"model.{stack}.embed_positions.weight"] = sinusoids(model["max_length"], model["width"])
        found |= norm(ours, f"{stack}.norm", f"model.{stack}.layer_norm")
        for number in range(model[f"{stack}_layers"]):
            found |= layer(ours, f"{stack}.layers.{number}", f"model.{stack}.layers.{number}")
    return found


def layer(ours: Mapping[str, Tensor], here: str, there: str) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for kind in ("weight", "bias"):
        parts = list(zip("qkv", ours[f"{here}.attention.packed.{kind}"].chunk(3), strict=True))
        found |= {f"{there}.self_attn.{part}_proj.{kind}": value for part, value in parts}
        found[f"{there}.self_attn.out_proj.{kind}"] = ours[f"{here}.attention.output.{kind}"]
        found[f"{there}.fc1.{kind}"] = ours[f"{here}.feedforward.inner.{kind}"]
        found[f"{there}.fc2.{kind}"] = ours[f"{here}.feedforward.outer.{kind}"]
        if f"{here}.cross.query.{kind}" in ours:
            key, value = ours[f"{here}.cross.packed.{kind}"].chunk(2)
            cross = {"q": ours[f"{here}.cross.query.{kind}"], "k": key, "v": value}
            found |= {f"{there}.encoder_attn.{part}_proj.{kind}": value for part, value in cross.items()}
            found[f"{there}.encoder_attn.out_proj.{kind}"] = ours[f"{here}.cross.output.{kind}"]
    for around, name in NORMS.items():
        if f"{here}.{around}.norm.gain" in ours:
            found |= norm(ours, f"{here}.{around}.norm", f"{there}.{name}_layer_norm")
    return found


def norm(ours: Mapping[str, Tensor], here: str, there: str) -> dict[str, Tensor]:
    return {f"{there}.weight": ours[f"{here}.gain"], f"{there}.bias": ours[f"{here}.shift"]}


def batches(sources: list[list[int]], budget: int) -> Iterator[list[int]]:
    """Places of the sources, longest first, in pieces of rows · longest ≤ `budget`."""
    part: list[int] = []
    for place in sorted(range(len(sources)), key=lambda i: -len(sources[i])):
        if part and len(sources[part[0]]) * (len(part) + 1) > budget:
            yield part
            part = []
        part.append(place)
    if part:
        yield part


class Translator:
    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.plan, self.model = plan, architecture(plan)
        weights = renamed(load_file(plan["weights"]), plan["model"])
        missing, unknown = self.model.load_state_dict(weights, strict=False)
        assert not unknown, unknown
        assert set(missing) <= {"final_logits_bias"}, missing
        self.words = Words(plan)

    def work(self, asked: dict[str, Any]) -> dict[str, Any]:
        with torch.inference_mode():
            if "source" in asked:
                return {"scores": self.score(asked["source"], asked["target"])}
            return {"texts": self.translate(asked["beam"])}

    def translate(self, beam: int) -> list[str]:
        sources = [[*source, EOS] for source in self.words.ids(self.plan["texts"])]
        outputs: list[list[int]] = [[] for _ in sources]
        for part in batches(sources, BATCH_TOKENS // beam):
            tokens = rectangle([sources[i] for i in part])
            found = self.model.generate(
                input_ids=tokens,
                attention_mask=tokens.ne(PAD).long(),
                num_beams=beam,
                do_sample=False,
                length_penalty=self.plan["length_penalty"],
                early_stopping=False,
                max_new_tokens=self.plan["longest"],
                suppress_tokens=list(NEVER),
            )
            for place, row in zip(part, found[:, 1:].tolist(), strict=True):
                outputs[place] = row[: row.index(EOS)] if EOS in row else row
        return self.words.texts(outputs)

    def score(self, source: list[int], target: list[int]) -> list[float]:
        goals = torch.tensor([[*target, EOS]])
        inputs = torch.tensor([[BOS, *target]])
        logits = self.model(input_ids=torch.tensor([[*source, EOS]]), decoder_input_ids=inputs).logits
        found: list[float] = logits.log_softmax(-1).gather(-1, goals[..., None]).flatten().tolist()
        return found


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(plan["threads"])
    answers = Answers()
    serve(answers, Translator(plan).work)


if __name__ == "__main__":
    main()
