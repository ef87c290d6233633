"""From the options of a recurrent model to the model: every choice becomes an object here."""

import torch
from torch import nn

from regard.errors import RecipeError
from regard.layers.dropout import Dropout
from regard.layers.recurrent import GRU, LSTM, TANH, BothWays, Cell, OneWay, Stack
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
from regard.models.recurrent import Attentional, Joined, RecurrentDecoder, RecurrentEncoder
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

    encoder_stack = build_encoder_stack(options, dropout)
    feed = options.width if options.input_feeding else 0
    decoder_stack = encoder_stack
    if not options.shared_cell:
        decoder_stack = Stack(one_way_layers(options, options.embedding + feed, options.decoder_layers), dropout)

    attention = build_attention(options, encoder_stack.width)
    readout = Attentional(attention, joined_width(options), feed) if feed else Joined(attention)
    output = nn.Linear(feed or joined_width(options), target_vocab)
    if options.tie_output:
        output.weight = target.weight
    return SequenceToSequence(
        RecurrentEncoder(source, encoder_stack, dropout),
        RecurrentDecoder(target, bridge(encoder_stack, decoder_stack), decoder_stack, readout, output, dropout),
    )


def refuse_the_impossible(options: RecurrentOptions) -> None:
    """Raises a RecipeError that names the first option which the others do not allow."""
    for wrong, message in (*objections_to_attention(options), *objections_to_sharing(options)):
        if wrong:
            raise RecipeError(message)


def objections_to_attention(options: RecurrentOptions) -> list[tuple[bool, str]]:
    attention, width = options.attention, options.width
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
            options.bidirectional and attention in ("dot", "scaled-dot"),
            f"model.attention: {attention} needs an encoder as wide as the decoder ({width}), found both directions "
            f"({2 * width}); set model.bidirectional=false or model.attention=general",
        ),
    ]


def objections_to_sharing(options: RecurrentOptions) -> list[tuple[bool, str]]:
    features, shared = options.width if options.input_feeding else joined_width(options), options.shared_cell
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


def memory_width(options: RecurrentOptions) -> int:
    return 2 * options.width if options.bidirectional else options.width


def joined_width(options: RecurrentOptions) -> int:
    """Width of [y^d; y^a]; the values of parameterised attention are as wide as its queries."""
    read = {"none": 0, "parameterised": options.width}.get(options.attention, memory_width(options))
    return options.width + read


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


def one_way_layers(options: RecurrentOptions, inputs: int, layers: int) -> list[OneWay]:
    return [OneWay(build_cell(options, below)) for below in [inputs] + [options.width] * (layers - 1)]


def build_encoder_stack(options: RecurrentOptions, dropout: nn.Module) -> Stack:
    if not options.bidirectional:
        return Stack(one_way_layers(options, options.embedding, options.encoder_layers), dropout)
    widths = [options.embedding] + [2 * options.width] * (options.encoder_layers - 1)
    return Stack([BothWays(build_cell(options, below), build_cell(options, below)) for below in widths], dropout)


def bridge(encoder: Stack, decoder: Stack) -> nn.Module:
    """The decoder's first state: the encoder's last one where they have one shape, else tanh(W summary)."""
    if encoder.state_widths == decoder.state_widths:
        return nn.Identity()
    return nn.Sequential(nn.Linear(sum(encoder.state_widths), sum(decoder.state_widths)), nn.Tanh())


def build_attention(options: RecurrentOptions, memory: int) -> SourceAttention:
    width = options.width
    if options.coverage:
        return CoveredAttention(Additive(width, memory, width), width)
    match options.attention:
        case "none":
            return Unattended()
        case "dot":
            return Attention(Dot(), nn.Identity())
        case "scaled-dot":
            return Attention(ScaledDot(), nn.Identity())
        case "general":
            return Attention(General(width, memory), nn.Identity())
        case "additive":
            return Attention(Additive(width, memory, width), nn.Identity())
        case "parameterised":
            return Attention(Projected(width, memory, width), nn.Linear(memory, width, bias=False))
