"""From options to the parts that every stack of attention layers is made of, whichever family it belongs to."""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import torch.nn.functional as F
from torch import nn

from regard.errors import RecipeError
from regard.explaining.explanation import Kind
from regard.layers.attention import CrossAttention, Kernel, SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feedforward import Activation, FeedForward, GatedFeedForward, gelu, gelu_tanh
from regard.layers.kernels import Full, Linear, Window
from regard.layers.norm import LayerNorm, LayerNormOutside, RMSNorm
from regard.layers.residual import Around, PostNorm, PreNorm
from regard.models.transformer import EncoderLayer
from regard.recipe.models import Layers, StackOptions

NORMS = {"layer": LayerNorm, "layer-outside": LayerNormOutside, "rms": RMSNorm}
ORDERS: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm}
PLAIN: dict[str, Activation] = {"relu": F.relu, "gelu": gelu, "gelu-tanh": gelu_tanh, "silu": F.silu}
GATED: dict[str, Activation] = {"swiglu": F.silu, "geglu": gelu, "geglu-tanh": gelu_tanh, "reglu": F.relu}


class StackParts:
    """Each choice of the options as a finished part."""

    def __init__(self, options: StackOptions) -> None:
        self.options = options
        self.head_width = options.head_width or options.width // options.heads

    def norm(self) -> nn.Module:
        return NORMS[self.options.norm](self.options.width, self.options.norm_epsilon)

    def last_norm(self) -> nn.Module:
        return self.norm() if self.options.order == "pre" else nn.Identity()

    def around(self) -> Around:
        return ORDERS[self.options.order](self.norm(), Dropout(self.options.dropout))

    def feedforward(self) -> nn.Module:
        o = self.options
        if o.activation in PLAIN:
            return FeedForward(o.width, o.feedforward, PLAIN[o.activation], o.bias)
        return GatedFeedForward(o.width, o.feedforward, GATED[o.activation], o.bias)

    def kernel(self, causal: bool) -> Kernel[Any]:
        o = self.options
        match o.attention:
            case "full":
                return Full(causal, o.attention_dropout)
            case "window":
                return Window(causal, o.window, o.attention_dropout)
            case "linear":
                return Linear(causal)

    def self_attention(self, causal: bool, heads: Sequence[int]) -> SelfAttention:
        """`heads`: which ones it has, counted from 1."""
        o = self.options
        places = None if len(heads) == o.heads else [head - 1 for head in heads]
        return SelfAttention(o.width, len(heads), self.head_width, self.kernel(causal), o.bias, places)

    def cross_attention(self, heads: Sequence[int]) -> CrossAttention:
        o = self.options
        return CrossAttention(o.width, len(heads), self.head_width, Full(False, o.attention_dropout), o.bias)

    def encoder_layer(self, causal: bool, heads: Sequence[int], network: Callable[[], nn.Module]) -> EncoderLayer:
        """Self-attention, and what `network` makes: `feedforward` of this class, or a mixture of several.

        The attention is made first: in this order random numbers are drawn.
        """
        return EncoderLayer(self.self_attention(causal, heads), network(), self.around(), self.around())


def refuse_heads(options: StackOptions) -> None:
    width, heads = options.width, options.heads
    if options.head_width is None and width % heads:
        divisors = ", ".join(str(i) for i in range(1, min(width, 64) + 1) if width % i == 0)
        raise RecipeError(
            f"model.heads: {heads} does not divide model.width {width}; try {divisors}, or set model.head_width"
        )
    for kind in get_args(Kind):
        refuse_kept(options, kind)


def refuse_kept(options: StackOptions, kind: Kind) -> None:
    kept: Layers = getattr(options.kept_heads, kind, ())
    layers = options.stacks.get(kind, 0)
    if kept and len(kept) != layers:
        raise RecipeError(
            f"model.kept_heads.{kind}: found {len(kept)} layers, but this model has {layers}; "
            "give the heads of each, or leave it out"
        )
    for number, heads in enumerate(kept, start=1):
        if not heads or list(heads) != sorted(set(heads)) or heads[-1] > options.heads:
            raise RecipeError(
                f"model.kept_heads.{kind}: found {list(heads)} in layer {number}, expected rising numbers from 1 to "
                f"model.heads {options.heads}, one at least"
            )


def refuse_linear(options: StackOptions) -> None:
    """Linear attention forms no weights: nothing can be done with them."""
    if options.attention == "linear" and options.attention_dropout:
        raise RecipeError(
            f"model.attention_dropout: {options.attention_dropout} drops attention weights, which "
            "model.attention linear never forms; use 0"
        )
