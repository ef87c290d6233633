"""Training FLOPs by formula, one for each family: the matrix products of a sentence pair, counted by hand.

A multiplication and an addition are two operations. Embeddings look up and cost nothing; sums, norms and activations
are not counted. Lengths have their end tokens in them, and no padding.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from regard.explaining.explanation import Kind
from regard.recipe.build_recurrent import (
    RECURRENCES,
    deep,
    feature_width,
    joined_width,
    layer_width,
    memory_width,
    query_width,
    read_width,
)
from regard.recipe.build_stack import GATED
from regard.recipe.models import ByteNetOptions, ConvS2SOptions, ModelOptions, RecurrentOptions, TransformerOptions

CHUNK = 64  # tokens that causal linear attention takes at a time
BLOCK = 32  # queries that window attention takes at a time, at least


@dataclass(frozen=True)
class Cost:
    """Floating-point operations of a model's matrix products."""

    model: ModelOptions
    vocabulary: int  # of the target

    def forward(self, source: int, target: int) -> int:
        """Of one sentence pair."""
        output = 2 * target * output_width(self.model) * self.vocabulary
        match self.model:
            case TransformerOptions():
                return transformer(self.model, source, target) + output
            case RecurrentOptions():
                return recurrent(self.model, source, target) + output
            case ByteNetOptions():
                return bytenet(self.model, source, target) + output
            case ConvS2SOptions():
                return convs2s(self.model, source, target) + output
            case _:
                raise TypeError(f"{self.model.kind}: what it costs is not known, for it reads no pairs")

    def training(self, source: int, target: int) -> int:
        """The backward pass multiplies twice as much: once for the inputs, once for the weights."""
        return 3 * self.forward(source, target)

    def per_target_token(self, lengths: Iterable[tuple[int, int]]) -> float:
        """Of training, over a corpus of (source, target) lengths."""
        pairs = list(lengths)
        return self.epoch(pairs) / sum(target for _, target in pairs)

    def epoch(self, lengths: Iterable[tuple[int, int]]) -> int:
        """Of training on every pair of a corpus once."""
        return sum(self.training(*pair) for pair in lengths)


def output_width(model: ModelOptions) -> int:
    return feature_width(model) if isinstance(model, RecurrentOptions) else model.width


def linear(inputs: int, outputs: int) -> int:
    """Of one row."""
    return 2 * inputs * outputs


# ---------------------------------------------------------------- Transformer
def transformer(o: TransformerOptions, source: int, target: int) -> int:
    """Per layer: 8da + f a position and 4·q·k·a of attention, with a = heads · head width and f of the feed-forward.

    The decoder has 4da a position more on either side for cross-attention. For the base model a = d and f = 4·d·d_ff.
    """
    d, f = o.width, feedforward(o)
    encoder = (source * (8 * d * a + f) + self_attention(o, a, source, causal=False) for a in widths(o, "encoder"))
    decoder = (target * (8 * d * a + f) + self_attention(o, a, target, causal=True) for a in widths(o, "decoder"))
    cross = (4 * d * a * (source + target) + 4 * target * source * a for a in widths(o, "cross"))
    return sum(encoder) + sum(decoder) + sum(cross)


def widths(o: TransformerOptions, kind: Kind) -> list[int]:
    """Of all heads of a layer together, layer by layer."""
    return [len(heads) * head_width(o) for heads in o.heads_of(kind)]


def head_width(o: TransformerOptions) -> int:
    return o.head_width or o.width // o.heads


def feedforward(o: TransformerOptions) -> int:
    """Two matrices, three where gated; of a mixture only the experts that a position goes to, and both gates."""
    one = linear(o.width, o.feedforward) * (3 if o.activation in GATED else 2)
    return one if o.experts is None else o.active * one + 2 * linear(o.width, o.experts)


def self_attention(o: TransformerOptions, a: int, length: int, *, causal: bool) -> int:
    """Q Kᵀ and A V, 4·q·k·a together. Masked pairs count: they are computed."""
    e = head_width(o)
    match o.attention:
        case "full":
            return 4 * length * length * a
        case "window":
            return 4 * window_pairs(length, o.window, causal=causal) * a
        case "linear" if not causal:  # Σ φ(k) vᵀ, φ(q) times it, φ(q) times Σ φ(k)
            return length * a * (4 * e + 2)
        case "linear":  # pairs inside a chunk, sums before it
            chunk = min(CHUNK, length)
            return math.ceil(length / chunk) * chunk * a * (4 * chunk + 4 * e + 2)


def window_pairs(length: int, size: int, *, causal: bool) -> int:
    """Short inputs meet all of themselves, long ones block by block what a query of the block can see."""
    block = max(size, BLOCK)
    if length <= 2 * block:
        return length * length
    return math.ceil(length / block) * block * (size + block + (0 if causal else size))


# ---------------------------------------------------------------- recurrent
def recurrent(o: RecurrentOptions, source: int, target: int) -> int:
    """2·g·d·(inputs + d) a cell and position, with g gates; the bridge once; attention from every target position."""
    encoder, states = encoder_cells(o)
    decoder, start = decoder_cells(o)
    bridge = 0 if states == start else linear(sum(states), sum(start))
    combine = linear(joined_width(o), o.width) if o.input_feeding and not deep(o) else 0
    prepare, query, look = reading(o)
    return source * (encoder + prepare) + bridge + target * (decoder + query + combine + source * look)


def cell(o: RecurrentOptions, inputs: int) -> int:
    return linear(inputs + o.width, RECURRENCES[o.cell].gates * o.width)


def encoder_cells(o: RecurrentOptions) -> tuple[int, list[int]]:
    """Operations for each source position, and the widths of the layers' states."""
    cost, states, inputs, state = 0, [], o.embedding, RECURRENCES[o.cell].parts * o.width
    for depth in range(o.encoder_layers):
        both = o.bidirectional and (o.stack == "plain" or (o.stack == "residual" and depth == 0))
        cost += cell(o, inputs) * (2 if both else 1)
        states.append(state * (2 if both else 1))
        inputs = 2 * o.width if both else layer_width(o)
    return cost, states


def decoder_cells(o: RecurrentOptions) -> tuple[int, list[int]]:
    """The same for each target position. What was read joins the lowest input, and in residual stacks every input."""
    if deep(o):
        first, above = o.embedding + read_width(o), layer_width(o) + (read_width(o) if o.stack == "residual" else 0)
    else:
        first, above = o.embedding + (o.width if o.input_feeding else 0), layer_width(o)
    cost = cell(o, first) + (o.decoder_layers - 1) * cell(o, above)
    return cost, [RECURRENCES[o.cell].parts * o.width] * o.decoder_layers


def reading(o: RecurrentOptions) -> tuple[int, int, int]:
    """Of attention: for each source position, for each target position, and for each pair of them."""
    queries, memory, width = query_width(o), memory_width(o), o.width
    match o.attention:
        case "none":
            return 0, 0, 0
        case "dot" | "scaled-dot":
            return 0, 0, 2 * queries + 2 * memory
        case "general":
            return linear(memory, queries), 0, 2 * queries + 2 * memory
        case "additive":
            return linear(memory, width), linear(queries, width), 2 * width + 2 * memory
        case "parameterised":
            return 2 * linear(memory, width), linear(queries, width), 4 * width


# ---------------------------------------------------------------- convolutional
def bytenet(o: ByteNetOptions, source: int, target: int) -> int:
    """d·d/2 · 2 twice and k·(d/2)² · 2 a block and position; the encoder has ⌈stretch · source⌉ positions."""
    inner = o.width // 2
    block = 2 * linear(o.width, inner) + linear(o.taps * inner, inner)
    positions = math.ceil(source * o.stretch) * o.encoder_rounds + target * o.decoder_rounds
    return len(o.rates) * positions * block


def convs2s(o: ConvS2SOptions, source: int, target: int) -> int:
    """2·k·d·2d a convolution and position; every decoder layer also has two d × d products and attention, 4·s·d."""
    d = o.width
    square, convolution = linear(d, d), linear(o.taps * d, 2 * d)
    encoder = 2 * square + o.encoder_layers * convolution
    decoder = 2 * square + o.decoder_layers * (convolution + 2 * square + 4 * source * d)
    return source * encoder + target * decoder
