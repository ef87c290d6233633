"""Small Transformers of every variant, for the tests that hold their compiled twins to them."""

import torch

from regard.models.interface import Memory, SequenceToSequence
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import TransformerOptions
from regard.text.special import PAD

VOCAB, LONGEST = 11, 64
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "encoder_layers": 1, "decoder_layers": 2, "max_length": LONGEST}
VARIANTS = {
    "sinusoids before the norm": {},
    "one head, post-norm": {"heads": 1, "order": "post"},
    "learned, post-norm, GELU": {"order": "post", "activation": "gelu", "positions": "learned"},
    "untied, wide heads, GELU": {"activation": "gelu", "head_width": 6, "tie_output": False},
    "rotary": {"positions": "rotary"},
    "rotary, narrow heads, post-norm": {"positions": "rotary", "head_width": 2, "order": "post"},
    "no positions": {"positions": "none", "scale_embedding": False},
    "pruned to unequal layers": {"kept_heads": {"decoder": [[2], [1, 3]], "cross": [[1, 2, 3], [2]]}},
    "pruned to equal layers, rotary": {
        "positions": "rotary",
        "kept_heads": {"decoder": [[2, 3], [1, 3]], "cross": [[1, 2], [1, 3]]},
    },
    "concatenated": {"position_join": "concatenate", "position_width": 4, "tie_output": False},
    "no biases, another ε": {"bias": False, "norm_epsilon": 0.3},
    "as Marian": {"order": "post", "activation": "silu", "positions": "sinusoid-halves", "output_bias": True},
    "tanh GELU, untied without a bias": {
        "activation": "gelu-tanh",
        "bias": False,
        "tie_output": False,
        "output_bias": False,
    },
}
SOURCES = [[4, 8, 5, 7, 6, 3], [7, 3], [5, 5, 4, 3]]


def build(**chosen) -> SequenceToSequence:
    """With weights large enough that everything has an effect."""
    torch.manual_seed(13)
    model = build_transformer(TransformerOptions(**(SIZES | chosen)), VOCAB, VOCAB, True).eval()
    for parameter in model.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def encode(model, sources) -> Memory:
    width = max(map(len, sources))
    tokens = torch.tensor([source + [PAD] * (width - len(source)) for source in sources])
    return model.encode(tokens, torch.arange(width) < torch.tensor([len(source) for source in sources])[:, None])
