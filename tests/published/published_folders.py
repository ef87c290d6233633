"""Tiny checkpoints as others publish them: a random model of transformers and a tokeniser in one folder."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from published_examples import write_byte_level, write_marian, write_t5
from published_models import scrambled
from published_twins import roughen

transformers = pytest.importorskip("transformers")

TEXTS = ["the cat sat on the mat", "the dog's dog", "a cat", "und der Hund saß auf der Katze"]
EXTRA = 3  # rows of a model for which its vocabulary has no name
SIZES = {
    "gpt2": {"n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 40, "n_inner": 20},
    "t5": {"d_model": 12, "d_kv": 5, "d_ff": 18, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 3},
    "marian": {
        "d_model": 12,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 20,
        "decoder_ffn_dim": 20,
        "max_position_embeddings": 64,
        "activation_function": "swish",
        "scale_embedding": True,
        "forced_eos_token_id": None,
    },
}
CLASSES = {"gpt2": "GPT2LMHeadModel", "t5": "T5ForConditionalGeneration", "marian": "MarianMTModel"}
WRITERS = {"gpt2": write_byte_level, "t5": write_t5, "marian": write_marian}
SEARCH = {"num_beams": 3, "length_penalty": 0.7, "max_length": 12}


def names_in(folder: Path, family: str) -> dict[str, int]:
    """Each name of the tokeniser with its id, as transformers reads it."""
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return transformers.AutoTokenizer.from_pretrained(folder).get_vocab()


def special(family: str, ids: dict[str, int]) -> dict[str, int]:
    if family == "gpt2":
        return {"bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|endoftext|>"]}
    return {
        "pad_token_id": ids["<pad>"],
        "eos_token_id": ids["</s>"],
        "decoder_start_token_id": ids["<pad>"],
    }


def write_checkpoint(folder: Path, family: str, **chosen) -> Path:
    """The folder as `save_pretrained` makes it, but for the tokeniser's files, which are the older ones."""
    WRITERS[family](folder)
    ids = names_in(folder, family)
    settings = SIZES[family] | {"vocab_size": len(ids) + EXTRA} | special(family, ids) | chosen
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(family, **settings)
    model = getattr(transformers, CLASSES[family])(config).eval()
    if family == "gpt2":
        scrambled(model)
    else:
        roughen(model)
        for key, value in SEARCH.items():
            setattr(model.generation_config, key, value)
    model.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Theirs:
    """A checkpoint as transformers opens it."""

    model: "transformers.PreTrainedModel"
    tokeniser: "transformers.PreTrainedTokenizerBase"

    def ids(self, text: str) -> list[int]:
        return self.tokeniser(text).input_ids

    @torch.no_grad()
    def write(self, ids: list[int], **options) -> list[int]:
        """What it adds to the text (GPT-2) or writes for it, without what is special."""
        found = self.model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), **options)[0].tolist()
        new = found[1:] if self.model.config.is_encoder_decoder else found[len(ids) :]
        end = self.model.config.eos_token_id
        return new[: new.index(end)] if end in new else new


def opened(folder: Path, family: str) -> Theirs:
    model = getattr(transformers, CLASSES[family]).from_pretrained(folder).eval()
    return Theirs(model, transformers.AutoTokenizer.from_pretrained(folder))
