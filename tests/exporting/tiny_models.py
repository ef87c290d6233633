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
    "rotary": {"positions": "rotary"},
    "rotary, another base": {"positions": "rotary", "position_base": 50.0},
    "sinusoids of another base": {"position_base": 50.0},
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


def tiny(path: Path, *, shared: bool = False, bias: Tensor | None = None, **model: object) -> ModelFolder:
    """A model with weights large enough that everything has an effect. `bias` is that of an untied output layer."""
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
        if bias is not None:
            network.decoder.output.bias.copy_(bias)
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
