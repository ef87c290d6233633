"""Marian, as OPUS-MT publishes its models: the Transformer of 2017, sines and cosines apart, a bias on the logits.

Junczys-Dowmunt et al. 2018; Tiedemann & Thottingal 2020.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from torch import Tensor

from regard.errors import ModelFormatError
from regard.published import fields
from regard.published.config import Published, read
from regard.published.fields import OURS, Layers, check_heads
from regard.published.layout import Entry, Layout, Rows, Values, check_order, linear, norm, packed
from regard.published.tying import adds_nothing, stored
from regard.published.vocabulary import NONE, SILENT, Order, special_first
from regard.recipe.models import Activation, Positive, Probability, TransformerOptions

UNK = 1  # in every OPUS-MT vocabulary; config.json does not say
SHARED, SOURCE, TARGET = "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
HEAD = "lm_head.weight"
# Sinusoids are computed; and a shared embedding is not read where each side has its own.
IGNORED = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight", SHARED)
SAME_FOR_BOTH = (
    ("encoder_attention_heads", "decoder_attention_heads"),
    ("encoder_ffn_dim", "decoder_ffn_dim"),
    ("vocab_size", "decoder_vocab_size"),
)


class MarianConfig(Published):
    model_type: Literal["marian"]
    vocab_size: Positive
    decoder_vocab_size: Positive | None = None  # none: as vocab_size
    d_model: Positive
    encoder_layers: Layers
    decoder_layers: Layers
    encoder_attention_heads: Positive
    decoder_attention_heads: Positive
    encoder_ffn_dim: Positive
    decoder_ffn_dim: Positive
    activation_function: fields.Activation = "gelu"
    max_position_embeddings: Positive
    dropout: Probability = 0.1
    attention_dropout: Probability = 0.0
    scale_embedding: bool = False
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    static_position_embeddings: Literal[True] = True
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[False] = False
    add_final_layer_norm: Literal[False] = False
    pad_token_id: int
    eos_token_id: int = 0
    decoder_start_token_id: int | None = None  # none: the padding token


def facts(config: Mapping[str, Any]) -> MarianConfig:
    theirs = read(MarianConfig, config)
    check_heads("encoder_attention_heads", theirs.encoder_attention_heads, theirs.d_model)
    for one, other in SAME_FOR_BOTH:
        left, right = getattr(theirs, one), getattr(theirs, other)
        if right is not None and left != right:
            raise ModelFormatError(
                f"config.json: {other}: found {right}, expected {left} as {one}; Regard has one size for both sides"
            )
    return theirs


def options(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> TransformerOptions:
    """The model section of a recipe for this checkpoint: a config may say that tensors are one where they are not.

    Published code can also drop values inside feed-forward networks, and whole layers: only in training.
    """
    theirs = facts(config)
    shared = theirs.share_encoder_decoder_embeddings and all(
        adds_nothing(name, tensors, [SHARED]) for name in (SOURCE, TARGET)
    )
    return TransformerOptions(
        width=theirs.d_model,
        heads=theirs.encoder_attention_heads,
        feedforward=theirs.encoder_ffn_dim,
        dropout=theirs.dropout,
        attention_dropout=theirs.attention_dropout,
        order="post",
        activation=cast(Activation, OURS[theirs.activation_function]),
        encoder_layers=theirs.encoder_layers,
        decoder_layers=theirs.decoder_layers,
        positions="sinusoid-halves",
        max_length=theirs.max_position_embeddings,
        scale_embedding=theirs.scale_embedding,
        tie_output=theirs.tie_word_embeddings and adds_nothing(HEAD, tensors, [SHARED if shared else TARGET]),
        output_bias=True,
        share_embeddings=shared,
    )


def order(config: Mapping[str, Any]) -> Order:
    """The order of either vocabulary where no tokeniser has another; BOS starts their decoder, and is their padding."""
    theirs = facts(config)
    start = theirs.pad_token_id if theirs.decoder_start_token_id is None else theirs.decoder_start_token_id
    return special_first(theirs.vocab_size, unk=UNK, start=start, end=theirs.eos_token_id)


@dataclass(frozen=True)
class Biases:
    """A vector by vocabulary that stands in a matrix of one row there."""

    order: Order

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        (row,) = parts
        if row.dim() != 2 or len(row) != 1:
            raise ValueError(f"is {tuple(row.shape)}, expected one row")
        return Values(self.order, SILENT).join([row[0]])

    def split(self, ours: Tensor) -> list[Tensor]:
        return [values[None] for values in Values(self.order, SILENT).split(ours)]


@dataclass(frozen=True)
class Held:
    """Which of several names for one tensor a checkpoint has."""

    names: frozenset[str]


def held(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Held:  # noqa: ARG001
    """As for every family; the config adds nothing here."""
    return Held(frozenset(tensors))


def layout(options: TransformerOptions, order: Order, held: Held | None = None) -> Layout:
    """Where each tensor of ours comes from; without `held`, as a new checkpoint names it: each once."""
    check_order(order, sum(id != NONE for id in order))
    names, words = held.names if held else frozenset(), Rows(order)
    head = (HEAD,) if options.tie_output else ()
    if options.share_embeddings:
        tables = {"encoder": (SHARED, SOURCE, TARGET, *head)}
    else:
        tables = {"encoder": (SOURCE,), "decoder": (TARGET, *head)}
    found = [stored(f"{side}.entrance.embedding.table.weight", those, names, words) for side, those in tables.items()]
    found.append(Entry("decoder.output.bias", ("final_logits_bias",), Biases(order)))
    if not options.tie_output:
        found.append(Entry("decoder.output.weight", (HEAD,), words))
    for side, layers in (("encoder", options.encoder_layers), ("decoder", options.decoder_layers)):
        for number in range(layers):
            found += layer(f"{side}.layers.{number}", f"model.{side}.layers.{number}", side == "decoder")
    return found


def layer(ours: str, theirs: str, crossing: bool) -> list[Entry]:
    found = [
        *packed(f"{ours}.attention.packed", [f"{theirs}.self_attn.{x}_proj" for x in "qkv"]),
        *linear(f"{ours}.attention.output", f"{theirs}.self_attn.out_proj"),
        *norm(f"{ours}.around_attention.norm", f"{theirs}.self_attn_layer_norm"),
        *linear(f"{ours}.feedforward.inner", f"{theirs}.fc1"),
        *linear(f"{ours}.feedforward.outer", f"{theirs}.fc2"),
        *norm(f"{ours}.around_feedforward.norm", f"{theirs}.final_layer_norm"),
    ]
    if crossing:
        cross = f"{theirs}.encoder_attn"
        found += [
            *linear(f"{ours}.cross.query", f"{cross}.q_proj"),
            *packed(f"{ours}.cross.packed", [f"{cross}.k_proj", f"{cross}.v_proj"]),
            *linear(f"{ours}.cross.output", f"{cross}.out_proj"),
            *norm(f"{ours}.around_cross.norm", f"{cross}_layer_norm"),
        ]
    return found
