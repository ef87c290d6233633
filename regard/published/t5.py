"""T5 and its kin (v1.1, Flan) as a Transformer of ours: two foldings of weights make it exactly one.

T5 does not divide scores by √d_k: its W_q times √d_k, divided by √d_k, is the same. And in v1.0 the last features are
multiplied by d^-½: so does a gain times d^-½. Raffel et al. 2020.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import Tensor

from regard.published.config import Published, read
from regard.published.fields import Epsilon, Layers
from regard.published.layout import Entry, Layout, Made, Rows, Same, Scaled, Stacked, check_order
from regard.published.tying import adds_nothing, stored
from regard.published.vocabulary import NONE, Order, silence, special_first
from regard.recipe.build_stack import GATED
from regard.recipe.models import FEWEST_BUCKETS, Activation, Positive, Probability, TransformerOptions

UNK = 2  # in every T5 vocabulary; config.json does not say
TABLES = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
HEAD = "lm_head.weight"
# Older files have a bias for the distance to the source. There is none, and nothing reads it.
IGNORED = ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",)
ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "silu": "silu",
    "gated-relu": "reglu",
    "gated-gelu": "geglu-tanh",  # not "geglu": published code means the tanh form here, and only here
    "gated-silu": "swiglu",
}


class T5Config(Published):
    model_type: Literal["t5"]
    vocab_size: Positive
    d_model: Positive
    d_kv: Positive
    d_ff: Positive
    num_heads: Positive
    num_layers: Layers
    num_decoder_layers: Layers | None = None  # none: as many as num_layers
    relative_attention_num_buckets: Annotated[int, Field(ge=FEWEST_BUCKETS)] = 32
    relative_attention_max_distance: Positive = 128
    feed_forward_proj: Literal["relu", "gelu", "gelu_new", "silu", "gated-relu", "gated-gelu", "gated-silu"] = "relu"
    layer_norm_epsilon: Epsilon = 1e-6
    dropout_rate: Probability = 0.1
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None  # none: if tied; files of transformers 5 say it
    is_encoder_decoder: Literal[True] = True
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int | None = None  # none: the padding token


@dataclass(frozen=True)
class Held:
    """How a checkpoint says what can be said in several ways."""

    names: frozenset[str]
    scaled: bool  # the last features × d^-½


def held(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Held:
    theirs = read(T5Config, config)
    scaled = theirs.tie_word_embeddings if theirs.scale_decoder_outputs is None else theirs.scale_decoder_outputs
    return Held(frozenset(tensors), scaled)


def options(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> TransformerOptions:
    """The model section of a recipe for this checkpoint: a config may say that the output is tied where it is not.

    Published T5 also drops values inside its feed-forward networks and after its last norms: only in training.
    """
    theirs = read(T5Config, config)
    return TransformerOptions(
        width=theirs.d_model,
        heads=theirs.num_heads,
        head_width=theirs.d_kv,
        feedforward=theirs.d_ff,
        dropout=theirs.dropout_rate,
        attention_dropout=theirs.dropout_rate,
        norm="rms",
        norm_epsilon=theirs.layer_norm_epsilon,
        activation=ACTIVATIONS[theirs.feed_forward_proj],
        bias=False,
        encoder_layers=theirs.num_layers,
        decoder_layers=theirs.num_decoder_layers or theirs.num_layers,
        positions="relative",
        position_buckets=theirs.relative_attention_num_buckets,
        position_farthest=theirs.relative_attention_max_distance,
        scale_embedding=False,
        tie_output=theirs.tie_word_embeddings and adds_nothing(HEAD, tensors, TABLES),
        output_bias="silent",
    )


def order(config: Mapping[str, Any]) -> Order:
    """The order of the vocabulary where no tokeniser has another; BOS starts their decoder, and is their padding."""
    theirs = read(T5Config, config)
    start = theirs.pad_token_id if theirs.decoder_start_token_id is None else theirs.decoder_start_token_id
    return special_first(theirs.vocab_size, unk=UNK, start=start, end=theirs.eos_token_id)


@dataclass(frozen=True)
class Queries:
    """[f · W_q; W_k; W_v]: queries that are `factor` times as long, above keys and values."""

    factor: float

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        q, k, v = parts
        return Stacked(3).join([q * self.factor, k, v])

    def split(self, ours: Tensor) -> list[Tensor]:
        q, k, v = Stacked(3).split(ours)
        return [q / self.factor, k, v]


def layout(options: TransformerOptions, order: Order, held: Held | None = None) -> Layout:
    """Where each tensor of ours comes from; without `held`, as a new checkpoint names it: once, and scaled if tied."""
    check_order(order, sum(id != NONE for id in order))
    held = held or Held(frozenset(), options.tie_output)
    tables = (*TABLES, HEAD) if options.tie_output else TABLES
    last = Scaled(options.width**-0.5) if held.scaled else Same()
    found = [
        stored("encoder.entrance.embedding.table.weight", tables, held.names, Rows(order)),
        Entry("encoder.norm.gain", ("encoder.final_layer_norm.weight",), Same()),
        Entry("decoder.norm.gain", ("decoder.final_layer_norm.weight",), last),
        Entry("decoder.output.bias", (), Made(silence(order))),
    ]
    if not options.tie_output:
        found.append(Entry("decoder.output.weight", (HEAD,), Rows(order)))
    for side, layers in (("encoder", options.encoder_layers), ("decoder", options.decoder_layers)):
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        found.append(Entry(f"{side}.relation.table.weight", (table,), Same()))
        for number in range(layers):
            found += block(options, f"{side}.layers.{number}", f"{side}.block.{number}.layer", side == "decoder")
    return found


def block(options: TransformerOptions, ours: str, theirs: str, crossing: bool) -> list[Entry]:
    """One layer; in the decoder cross-attention stands between self-attention and the feed-forward network."""
    scale = (options.head_width or options.width // options.heads) ** 0.5
    own, cross, network = f"{theirs}.0.SelfAttention", f"{theirs}.1.EncDecAttention", f"{theirs}.{1 + crossing}"
    dense, inner = f"{network}.DenseReluDense", ("wi_0", "wi_1") if options.activation in GATED else ("wi",)
    found = [
        Entry(f"{ours}.attention.packed.weight", tuple(f"{own}.{x}.weight" for x in "qkv"), Queries(scale)),
        Entry(f"{ours}.attention.output.weight", (f"{own}.o.weight",), Same()),
        Entry(f"{ours}.around_attention.norm.gain", (f"{theirs}.0.layer_norm.weight",), Same()),
        Entry(f"{ours}.feedforward.inner.weight", tuple(f"{dense}.{x}.weight" for x in inner), Stacked(len(inner))),
        Entry(f"{ours}.feedforward.outer.weight", (f"{dense}.wo.weight",), Same()),
        Entry(f"{ours}.around_feedforward.norm.gain", (f"{network}.layer_norm.weight",), Same()),
    ]
    if crossing:
        found += [
            Entry(f"{ours}.cross.query.weight", (f"{cross}.q.weight",), Scaled(scale)),
            Entry(f"{ours}.cross.packed.weight", (f"{cross}.k.weight", f"{cross}.v.weight"), Stacked(2)),
            Entry(f"{ours}.cross.output.weight", (f"{cross}.o.weight",), Same()),
            Entry(f"{ours}.around_cross.norm.gain", (f"{theirs}.1.layer_norm.weight",), Same()),
        ]
    return found
