"""A Transformer's weights in the layout that CTranslate2 computes with, or one line about why there is none."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.errors import DecodingError, RecipeError
from regard.recipe.build_placed import SINUSOIDS
from regard.recipe.models import ModelOptions, TransformerOptions

TABLES = (*SINUSOIDS, "learned", "none")  # positions that join the input; of "none" all rows are zero
ACTIVATIONS = {  # what the recipe calls it: CTranslate2's name, and whether a second projection is gated by it
    "relu": ("RELU", False),
    "gelu": ("GELU", False),
    "gelu-tanh": ("GELUTanh", False),
    "silu": ("SWISH", False),
    "swiglu": ("SWISH", True),
    "geglu": ("GELU", True),
    "geglu-tanh": ("GELUTanh", True),
    "reglu": ("RELU", True),
}


def library() -> Any:
    """The ctranslate2 package, which not everybody has."""
    try:
        import ctranslate2
    except ImportError:
        raise DecodingError('ctranslate2: not installed; install it with: pip install "regard[fast]"') from None
    return ctranslate2


def refuse_unrepresentable(options: ModelOptions) -> None:
    """Say which choice of the recipe CTranslate2 has no counterpart for, before anything is written."""
    if not isinstance(options, TransformerOptions):
        raise refusal("kind", options.kind, "transformer")
    if options.experts is not None:
        raise refusal("experts", f"a mixture of {options.experts}", "one network (null)")
    if options.attention != "full":
        raise refusal("attention", options.attention, "full")
    if options.kept_heads is not None:  # it has one number of heads for all layers
        raise refusal("kept_heads", "layers that have lost heads", "whole ones (null)")
    if options.norm == "layer-outside":
        raise refusal("norm", options.norm, "layer or rms")
    if options.positions == "alibi":  # it has ALiBi in decoders only
        raise refusal("positions", options.positions, "sinusoid, learned, relative, rotary or none")


def refusal(key: str, value: str, expected: str) -> RecipeError:
    return RecipeError(
        f"model.{key}: CTranslate2 cannot compute {value}, only {expected}; use the torch engine or train another model"
    )


def position_rows(options: TransformerOptions, cap: int) -> int | None:
    """How many positions an exported model knows on either side; none: no end."""
    if options.positions not in TABLES:
        return None
    return options.max_length if options.positions == "learned" else max(options.max_length, cap)


def transformer_spec(options: TransformerOptions, weights: Mapping[str, Tensor], rows: int | None) -> Any:
    """A ctranslate2 TransformerSpec that computes what `weights`, a model's state_dict, compute under `options`.

    `rows` are those of `position_rows`. The vocabularies are still missing.
    """
    specs = library().specs
    activation, gated = ACTIVATIONS[options.activation]
    # CTranslate2 reads a rotary dimension as 0 for the whole head, pairs (2i, 2i+1) when interleaved, as in `rotate`.
    common = {
        "pre_norm": options.order == "pre",
        "activation": getattr(specs.Activation, activation),
        "ffn_glu": gated,
        "rms_norm": options.norm == "rms",
        "head_dim": options.head_width,
        "relative_attention_bias": options.positions == "relative",
        "rotary_dim": 0 if options.positions == "rotary" else None,
        "rotary_base": options.position_base,
    }
    encoder = specs.transformer_spec.TransformerEncoderSpec(options.encoder_layers, options.heads, **common)
    decoder = specs.transformer_spec.TransformerDecoderSpec(options.decoder_layers, options.heads, **common)
    fill_stack(encoder, encoder.embeddings[0], Part(weights, "encoder."), options, rows)
    fill_stack(decoder, decoder.embeddings, Part(weights, "decoder."), options, rows)
    fill_output(decoder.projection, Part(weights, "decoder.output."))
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = options.norm_epsilon
    spec.config.add_source_eos = True
    return spec


class Part:
    """The weights whose names begin with `prefix`, named without it; copies, for CTranslate2 quantises in place."""

    def __init__(self, weights: Mapping[str, Tensor], prefix: str) -> None:
        self.weights, self.prefix = weights, prefix

    def within(self, name: str) -> "Part":
        return Part(self.weights, self.prefix + name)

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.weights

    def __getitem__(self, name: str) -> Tensor:
        return self.weights[self.prefix + name].detach().float().clone()


def fill_stack(stack: Any, embeddings: Any, part: Part, options: TransformerOptions, rows: int | None) -> None:
    """One of the two stacks: entrance, layers, last norm."""
    table = part["entrance.embedding.table.weight"]
    token_width = table.shape[1]  # narrower than the model where positions are concatenated: [E; PE] = [E; 0] + [0; PE]
    embeddings.weight = F.pad(table, (0, options.width - token_width))
    stack.scale_embeddings = token_width**0.5 if options.scale_embedding else 1.0
    if rows is not None:
        stack.position_encodings.encodings = position_table(options, part, rows, options.width - token_width)
    for number, layer in enumerate(stack.layer):
        fill_layer(layer, part.within(f"layers.{number}."), options)
        if options.positions == "relative":
            layer.self_attention.relative_attention_bias = part["relation.table.weight"]
            layer.self_attention.relative_attention_max_distance = np.int32(options.position_farthest)
    if options.order == "pre":
        fill_norm(stack.layer_norm, part.within("norm."))


def position_table(options: TransformerOptions, part: Part, rows: int, place: int) -> Float[Tensor, "t d"]:
    """What is added to the embeddings; `place` is the width of concatenated positions, 0 where they are added."""
    match options.positions:
        case "learned":
            table = part["entrance.positions.table.table.weight"]
        case "none":
            table = torch.zeros(rows, options.width)  # without a table CTranslate2 would add sinusoids of its own
        case waves:
            table = SINUSOIDS[waves](rows, place or options.width, options.position_base).float()
    return F.pad(table, (options.width - table.shape[1], 0))


def fill_layer(layer: Any, part: Part, options: TransformerOptions) -> None:
    fill_linear(layer.self_attention.linear[0], part.within("attention.packed."))
    fill_linear(layer.self_attention.linear[1], part.within("attention.output."))
    fill_norm(layer.self_attention.layer_norm, part.within("around_attention.norm."))
    if "cross.query.weight" in part:
        for place, name in enumerate(("query", "packed", "output")):
            fill_linear(layer.attention.linear[place], part.within(f"cross.{name}."))
        fill_norm(layer.attention.layer_norm, part.within("around_cross.norm."))
    inner = part.within("feedforward.inner.")
    if ACTIVATIONS[options.activation][1]:
        gate, value = (layer.ffn.linear_0, layer.ffn.linear_0_noact)
        gate.weight, value.weight = (half.clone() for half in inner["weight"].chunk(2))
        if options.bias:
            gate.bias, value.bias = (half.clone() for half in inner["bias"].chunk(2))
    else:
        fill_linear(layer.ffn.linear_0, inner)
    fill_linear(layer.ffn.linear_1, part.within("feedforward.outer."))
    fill_norm(layer.ffn.layer_norm, part.within("around_feedforward.norm."))


def fill_linear(linear: Any, part: Part) -> None:
    linear.weight = part["weight"]
    if "bias" in part:
        linear.bias = part["bias"]


def fill_output(linear: Any, part: Part) -> None:
    """Its weight, which may be that of the embedding, and its own bias."""
    linear.weight = part["table.weight" if "table.weight" in part else "weight"]
    if "bias" in part:
        linear.bias = part["bias"]


def fill_norm(norm: Any, part: Part) -> None:
    norm.gamma = part["gain"]
    if "shift" in part:
        norm.beta = part["shift"]
