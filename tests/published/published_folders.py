"""Tiny checkpoints as others publish them: a random model of transformers and what it reads with, in one folder."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from published_examples import write_byte_level, write_marian, write_t5, write_wordpiece
from published_models import scrambled
from published_twins import roughen

transformers = pytest.importorskip("transformers")

TEXTS = ["the cat sat on the mat", "the dog's dog", "a cat", "und der Hund saß auf der Katze"]
EXTRA = 3  # rows of a model for which its vocabulary has no name
SIZES = {
    "gpt2": {"n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 40, "n_inner": 20},
    "t5": {"d_model": 12, "d_kv": 5, "d_ff": 18, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 3},
    "bert": {
        "hidden_size": 12,
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "intermediate_size": 20,
        "max_position_embeddings": 40,
    },
    "vit": {
        "hidden_size": 12,
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "intermediate_size": 20,
        "image_size": [8, 12],
        "patch_size": 4,
        "id2label": dict(enumerate(["crane", "tulip", "rose", "crane"])),  # two of one name, as ImageNet has them
        "label2id": {"crane": 3, "tulip": 1, "rose": 2},
    },
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
LABELS = ["so so", "good", "bad"]
SIZES["bert-classes"] = SIZES["bert"] | {
    "id2label": dict(enumerate(LABELS)),
    "label2id": {name: number for number, name in enumerate(LABELS)},
}
CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "t5": "T5ForConditionalGeneration",
    "marian": "MarianMTModel",
    "bert": "BertForMaskedLM",
    "bert-classes": "BertForSequenceClassification",
    "vit": "ViTForImageClassification",
}
PIXELS = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": 8, "width": 12},
    "resample": 2,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.5, 0.2, 0.1],
}


def write_pixels(folder: Path) -> Path:
    """How a ViT reads images."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "preprocessor_config.json").write_text(json.dumps(PIXELS))
    return folder


WRITERS = {
    "gpt2": write_byte_level,
    "t5": write_t5,
    "marian": write_marian,
    "bert": write_wordpiece,
    "bert-classes": write_wordpiece,
    "vit": write_pixels,
}
SEARCH = {"num_beams": 3, "length_penalty": 0.7, "max_length": 12}


def names_in(folder: Path, family: str) -> dict[str, int]:
    """Each name of the tokeniser with its id, as transformers reads it."""
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return transformers.AutoTokenizer.from_pretrained(folder).get_vocab()


def words(folder: Path, family: str) -> dict[str, int]:
    """What the tokeniser in a folder decides of the config."""
    if family == "vit":
        return {}
    ids = names_in(folder, family)
    size = {"vocab_size": len(ids) + EXTRA}
    if family == "gpt2":
        return size | {"bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|endoftext|>"]}
    if family == "bert":
        return size | {"pad_token_id": ids["[PAD]"]}
    pad, end = ids["<pad>"], ids["</s>"]
    return size | {"pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": pad}


def write_checkpoint(folder: Path, name: str, **chosen) -> Path:
    """The folder as `save_pretrained` makes it, but for the tokeniser's files, which are the older ones.

    `name` is a family, with the head that it has after a hyphen.
    """
    WRITERS[name](folder)
    family = name.partition("-")[0]
    settings = SIZES[name] | words(folder, family) | chosen
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(family, **settings)
    model = getattr(transformers, CLASSES[name])(config).eval()
    if family in ("t5", "marian"):
        roughen(model)
        for key, value in SEARCH.items():
            setattr(model.generation_config, key, value)
    else:
        scrambled(model)
    model.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Theirs:
    """A checkpoint as transformers opens it."""

    model: "transformers.PreTrainedModel"
    tokeniser: "transformers.PreTrainedTokenizerBase | None"  # none: it reads images

    def ids(self, text: str) -> list[int]:
        return self.tokeniser(text).input_ids

    @torch.no_grad()
    def write(self, ids: list[int], **options) -> list[int]:
        """What it adds to the text (GPT-2) or writes for it, without what is special."""
        found = self.model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), **options)[0].tolist()
        new = found[1:] if self.model.config.is_encoder_decoder else found[len(ids) :]
        end = self.model.config.eos_token_id
        return new[: new.index(end)] if end in new else new


def opened(folder: Path, name: str) -> Theirs:
    model = getattr(transformers, CLASSES[name]).from_pretrained(folder).eval()
    return Theirs(model, None if name == "vit" else transformers.AutoTokenizer.from_pretrained(folder))
