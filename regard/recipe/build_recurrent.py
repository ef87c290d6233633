"""From the options of a recurrent model to the model: every choice becomes an object here."""

import torch
from torch import nn

from regard.errors import RecipeError
from regard.layers.dropout import Dropout
from regard.layers.recurrent import (
    GRU,
    LSTM,
    TANH,
    Backwards,
    BothWays,
    Cell,
    FastForward,
    Layer,
    OneWay,
    Skipped,
    Stack,
    fast_forward_width,
)
from regard.layers.scores import (
    Additive,
    Attention,
    CoveredAttention,
    Dot,
    General,
    Projected,
    ScaledDot,
    SourceAttention,
    Unattended,
)
from regard.models.interface import SequenceToSequence
from regard.models.recurrent import Attentional, DeepDecoder, Joined, RecurrentDecoder, RecurrentEncoder
from regard.recipe.models import RecurrentOptions

RECURRENCES = {"tanh": TANH, "lstm": LSTM, "gru": GRU}


def build_recurrent(
    options: RecurrentOptions, source_vocab: int, target_vocab: int, shared: bool
) -> SequenceToSequence:
    """The model with fresh weights; `shared` says that both sides have one vocabulary, and so may have one table."""
    refuse_the_impossible(options)
    dropout = Dropout(options.dropout)
    source = embedding(source_vocab, options)
    target = source if shared and options.share_embeddings else embedding(target_vocab, options)
    encoder = RecurrentEncoder(source, build_encoder_stack(options, dropout), dropout)
    output = nn.Linear(feature_width(options), target_vocab)
    if options.tie_output:
        output.weight = target.weight
    build_decoder = build_deep_decoder if deep(options) else build_plain_decoder
    return SequenceToSequence(encoder, build_decoder(options, encoder, target, output))


def build_plain_decoder(
    options: RecurrentOptions, encoder: RecurrentEncoder, target: nn.Embedding, output: nn.Linear
) -> RecurrentDecoder:
    """Attention looks from the top of the stack; what it reads joins the next input or the output layer."""
    feed = options.width if options.input_feeding else 0
    stack = encoder.stack
    if not options.shared_cell:
        stack = Stack(decoder_layers(options, options.embedding + feed, context=0), encoder.dropout)
    attention = build_attention(options)
    readout = Attentional(attention, joined_width(options), feed) if feed else Joined(attention)
    return RecurrentDecoder(target, bridge(encoder.stack, stack.state_widths), stack, readout, output, encoder.dropout)


def build_deep_decoder(
    options: RecurrentOptions, encoder: RecurrentEncoder, target: nn.Embedding, output: nn.Linear
) -> DeepDecoder:
    """Attention looks from the lowest layer; what it reads joins that layer's input, and residual ones above it too."""
    read = read_width(options)
    context = read if options.stack == "residual" else 0
    first, *above = decoder_layers(options, options.embedding + read, context)
    assert isinstance(first, OneWay | FastForward)
    stack = Stack(above, encoder.dropout, context)
    start = bridge(encoder.stack, [first.state_width, *stack.state_widths])
    return DeepDecoder(target, start, first, stack, build_attention(options), output)


def refuse_the_impossible(options: RecurrentOptions) -> None:
    """Raises a RecipeError that names the first option which the others do not allow."""
    objections = (*objections_to_attention(options), *objections_to_depth(options), *objections_to_sharing(options))
    for wrong, message in objections:
        if wrong:
            raise RecipeError(message)


def objections_to_attention(options: RecurrentOptions) -> list[tuple[bool, str]]:
    attention, queries, memory = options.attention, query_width(options), memory_width(options)
    return [
        (
            options.coverage and attention != "additive",
            f"model.coverage: enters additive scores only, found model.attention {attention}; "
            "set model.attention=additive or model.coverage=false",
        ),
        (
            options.input_feeding and attention == "none",
            "model.input_feeding: needs attention, found model.attention none; set model.input_feeding=false",
        ),
        (
            attention in ("dot", "scaled-dot") and queries != memory,
            f"model.attention: {attention} needs an encoder as wide as the decoder ({queries}), found {memory}; "
            "set model.bidirectional=false or model.attention=general",
        ),
    ]


def objections_to_depth(options: RecurrentOptions) -> list[tuple[bool, str]]:
    return [
        (
            deep(options) and options.decoder_layers == 1,
            f"model.stack: {options.stack} layers stand on a first one, found model.decoder_layers 1; "
            "set model.decoder_layers=2 or more",
        ),
        (
            options.stack != "plain" and options.shared_cell,
            f"model.shared_cell: encoder and decoder share plain layers only, found model.stack {options.stack}; "
            "set model.stack=plain",
        ),
    ]


def objections_to_sharing(options: RecurrentOptions) -> list[tuple[bool, str]]:
    features, shared = feature_width(options), options.shared_cell
    return [
        (
            shared and options.bidirectional,
            "model.shared_cell: a decoder cannot share cells that read backwards; set model.bidirectional=false",
        ),
        (
            shared and options.input_feeding,
            "model.shared_cell: input feeding makes the decoder's input wider than the encoder's; "
            "set model.input_feeding=false",
        ),
        (
            shared and options.encoder_layers != options.decoder_layers,
            f"model.shared_cell: needs equally many layers, found model.encoder_layers {options.encoder_layers} and "
            f"model.decoder_layers {options.decoder_layers}; make them equal",
        ),
        (
            options.tie_output and features != options.embedding,
            f"model.tie_output: the output layer reads {features} values, so that model.embedding must be {features}, "
            f"found {options.embedding}; set model.embedding={features} or model.tie_output=false",
        ),
    ]


def deep(options: RecurrentOptions) -> bool:
    """Whether what is read enters the layers themselves, from the lowest on."""
    return options.stack != "plain" and options.input_feeding


def layer_width(options: RecurrentOptions) -> int:
    """Width of what one layer of one direction puts out."""
    if options.stack == "fast-forward":
        return fast_forward_width(RECURRENCES[options.cell], options.width)
    return options.width


def memory_width(options: RecurrentOptions) -> int:
    """Only of a plain stack, and of a residual one that is a single layer, the top layer reads both ways."""
    both = options.stack == "plain" or (options.stack == "residual" and options.encoder_layers == 1)
    return layer_width(options) * (2 if both and options.bidirectional else 1)


def query_width(options: RecurrentOptions) -> int:
    """A deep decoder looks from its lowest state, the others from the top of their stack."""
    return options.width if deep(options) else layer_width(options)


def read_width(options: RecurrentOptions) -> int:
    """Width of y^a; the values of parameterised attention are as wide as the cells."""
    return {"none": 0, "parameterised": options.width}.get(options.attention, memory_width(options))


def joined_width(options: RecurrentOptions) -> int:
    """Width of [y^d; y^a]."""
    return layer_width(options) + read_width(options)


def feature_width(options: RecurrentOptions) -> int:
    """Width of what the output layer reads."""
    if deep(options):
        return layer_width(options)
    return options.width if options.input_feeding else joined_width(options)


def embedding(vocab: int, options: RecurrentOptions) -> nn.Embedding:
    """A table of N(0, 1), or N(0, 1/d) when the same numbers also make the logits."""
    table = nn.Embedding(vocab, options.embedding)
    if options.tie_output:
        nn.init.normal_(table.weight, std=options.embedding**-0.5)
    return table


def build_cell(options: RecurrentOptions, inputs: int) -> Cell:
    cell = Cell(RECURRENCES[options.cell], inputs, options.width)
    if options.cell == "lstm":
        # A forget gate that starts open lets gradients pass from the first step on. Józefowicz et al. 2015.
        with torch.no_grad():
            cell.input.bias[options.width : 2 * options.width] += 1.0
    return cell


def decoder_layers(options: RecurrentOptions, inputs: int, context: int) -> list[OneWay | Skipped | FastForward]:
    """Layers that read forwards; every one above the first also has `context` values of what was read."""
    widths = [inputs] + [layer_width(options) + context] * (options.decoder_layers - 1)
    return [one_way(options, width, depth) for depth, width in enumerate(widths)]


def one_way(options: RecurrentOptions, inputs: int, depth: int) -> OneWay | Skipped | FastForward:
    cell = build_cell(options, inputs)
    match options.stack:
        case "plain":
            return OneWay(cell)
        case "residual":  # from the third layer on: the second one may read two directions
            return OneWay(cell) if depth < 2 else Skipped(OneWay(cell))
        case "fast-forward":
            return FastForward(cell)


def build_encoder_stack(options: RecurrentOptions, dropout: nn.Module) -> Stack:
    """Which layers read backwards: all of them also do (plain), the first also does, every second one does alone."""
    layers: list[Layer] = []
    for depth in range(options.encoder_layers):
        inputs = layers[-1].width if layers else options.embedding
        both = options.stack == "plain" or (options.stack == "residual" and depth == 0)
        if options.bidirectional and both:
            layers.append(BothWays(build_cell(options, inputs), build_cell(options, inputs)))
        else:
            layer = one_way(options, inputs, depth)
            turned = options.bidirectional and options.stack == "fast-forward" and depth % 2
            layers.append(Backwards(layer) if turned else layer)
    return Stack(layers, dropout)


def bridge(encoder: Stack, decoder: list[int]) -> nn.Module:
    """The decoder's first state: the encoder's last one where they have one shape, else tanh(W summary)."""
    if encoder.state_widths == decoder:
        return nn.Identity()
    return nn.Sequential(nn.Linear(sum(encoder.state_widths), sum(decoder)), nn.Tanh())


def build_attention(options: RecurrentOptions) -> SourceAttention:
    width, queries, memory = options.width, query_width(options), memory_width(options)
    if options.coverage:
        return CoveredAttention(Additive(queries, memory, width), width)
    match options.attention:
        case "none":
            return Unattended()
        case "dot":
            return Attention(Dot(), nn.Identity())
        case "scaled-dot":
            return Attention(ScaledDot(), nn.Identity())
        case "general":
            return Attention(General(queries, memory), nn.Identity())
        case "additive":
            return Attention(Additive(queries, memory, width), nn.Identity())
        case "parameterised":
            return Attention(Projected(queries, memory, width), nn.Linear(memory, width, bias=False))
