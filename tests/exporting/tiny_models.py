"""Untrained model directories of any recipe: what the tests of exporting have in common."""

from pathlib import Path

import torch
from torch import Tensor

from regard.files import write_manifest
from regard.recipe.folder import ModelFolder, fresh_model, write_recipe, write_weights
from regard.recipe.recipe import parse
from regard.tasks.translate import Vocabularies
from regard.text.characters import Characters
from regard.text.special import BOS, PAD, UNK

SOURCE, TARGET = Characters("abcdefghijk ▁"), Characters("ABCDEFGH ")
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "encoder_layers": 2, "decoder_layers": 3, "max_length": 128}
VARIANTS = {
    "as published": {"order": "post"},
    "pre-norm": {},
    "RMS norm": {"norm": "rms"},
    "GELU": {"activation": "gelu"},
    "SwiGLU": {"activation": "swiglu"},
    "GEGLU": {"activation": "geglu"},
    "ReGLU": {"activation": "reglu"},
    "learned positions": {"positions": "learned"},
    "no positions": {"positions": "none"},
    "relative bias": {"positions": "relative"},
    "relative bias of few buckets": {"positions": "relative", "position_buckets": 8, "position_farthest": 20},
    "rotary": {"positions": "rotary"},
    "rotary, another base": {"positions": "rotary", "position_base": 50.0},
    "sinusoids of another base": {"position_base": 50.0},
    "sinusoids in halves": {"positions": "sinusoid-halves"},
    "another ε, no biases, tanh GELU": {"norm_epsilon": 0.1, "bias": False, "activation": "gelu-tanh"},
    "RMS of another ε, no biases, gated": {
        "norm": "rms",
        "norm_epsilon": 0.1,
        "bias": False,
        "activation": "geglu-tanh",
    },
    "SiLU, a bias on the tied output": {"activation": "silu", "output_bias": True},
    "untied without a bias": {"tie_output": False, "output_bias": False},
    "wide heads": {"head_width": 6},
    "narrow rotary heads": {"head_width": 2, "positions": "rotary"},
    "untied, unscaled": {"tie_output": False, "scale_embedding": False},
    "concatenated sinusoids": {"position_join": "concatenate", "position_width": 4, "tie_output": False},
    "concatenated learned": {
        "positions": "learned",
        "position_join": "concatenate",
        "position_width": 5,
        "tie_output": False,
    },
}


def tiny(path: Path, *, shared: bool = False, said: Tensor | None = None, **model: object) -> ModelFolder:
    """A model with weights large enough that everything has an effect. `said` is the bias of an untied output layer."""
    tree = {
        "data": {"corpora": [{"source": "a", "target": "b"}], "max_tokens": 64},
        "text": {"kind": "characters", "shared": shared},
        "model": model if "kind" in model else {**SIZES, "dropout": 0.0, **model},
        "decoding": {"cap": 60},
    }
    recipe, vocabularies = parse(tree, "test"), Vocabularies(SOURCE, SOURCE if shared else TARGET)
    network = fresh_model(recipe, vocabularies).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
        if said is not None:
            network.decoder.output.bias.copy_(said)
    return ModelFolder(path, recipe, vocabularies, network)


def unsaid(*tokens: int, weight: float = -30.0) -> Tensor:
    """An output bias under which the model itself never says what is forbidden, nor `tokens`."""
    return torch.zeros(len(TARGET)).index_fill(0, torch.tensor([PAD, UNK, BOS, *tokens]), weight)


def written(folder: ModelFolder) -> Path:
    """The same as a finished model directory."""
    folder.path.mkdir(parents=True)
    write_recipe(folder.path, folder.recipe, folder.vocabularies)
    write_weights(folder.path, folder.model)
    write_manifest(folder.path, {})
    return folder.path


def rows(lengths: tuple[int, ...], vocab: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, vocab, (length,), generator=generator).tolist() for length in lengths]
