"""GPT-2's published weights as those of SequenceToSequence(Nothing(), Gpt(…)). Radford et al. 2019."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from regard.published.config import Published, read
from regard.published.fields import OURS, Activation, Epsilon, Layers, check_heads
from regard.published.layout import Entry, Fold, Layout, Made, Repeated, Rows, Same, Transposed, check_order, norm
from regard.published.vocabulary import Order, silence
from regard.recipe.models import Positive, Probability

HEAD = "lm_head.weight"
IGNORED = ("*.attn.bias", "*.attn.masked_bias")  # causal masks, which old files hold


class Gpt2Config(Published):
    model_type: Literal["gpt2"]
    vocab_size: Positive
    n_embd: Positive
    n_head: Positive
    n_layer: Layers
    n_inner: Positive | None = None  # none: 4 · n_embd
    n_positions: Positive
    activation_function: Activation = "gelu_new"
    layer_norm_epsilon: Epsilon = 1e-5
    resid_pdrop: Probability = 0.1
    embd_pdrop: Probability = 0.1
    attn_pdrop: Probability = 0.1
    tie_word_embeddings: bool = True
    scale_attn_weights: Literal[True] = True
    scale_attn_by_inverse_layer_idx: Literal[False] = False
    add_cross_attention: Literal[False] = False


@dataclass(frozen=True)
class Sizes:
    """Everything that a builder needs: pre-norm, learned positions, an embedding without scale, an output bias."""

    vocab: int
    width: int
    heads: int
    layers: int
    feedforward: int
    max_length: int
    activation: str
    epsilon: float
    dropout: float
    embedding_dropout: float
    attention_dropout: float
    tied: bool


def sizes(config: Mapping[str, Any]) -> Sizes:
    """What the config says, in our words; ModelFormatError names what our model cannot be."""
    theirs = read(Gpt2Config, config)
    check_heads("n_head", theirs.n_head, theirs.n_embd)
    return Sizes(
        vocab=theirs.vocab_size,
        width=theirs.n_embd,
        heads=theirs.n_head,
        layers=theirs.n_layer,
        feedforward=theirs.n_inner or 4 * theirs.n_embd,
        max_length=theirs.n_positions,
        activation=OURS[theirs.activation_function],
        epsilon=theirs.layer_norm_epsilon,
        dropout=theirs.resid_pdrop,
        embedding_dropout=theirs.embd_pdrop,
        attention_dropout=theirs.attn_pdrop,
        tied=theirs.tie_word_embeddings,
    )


@dataclass(frozen=True)
class Held:
    """How a file names its tensors: what stands before each, and whether an output layer is stored."""

    prefix: str
    head: bool


def held(names: Collection[str]) -> Held:
    return Held("transformer." if "transformer.wte.weight" in names else "", HEAD in names)


def layout(sizes: Sizes, order: Order, held: Held) -> Layout:
    """A bias on the output layer, which they do not have, keeps the ids out that they do not have."""
    check_order(order, sizes.vocab)
    rows, theirs = Rows(order), held.prefix
    tables: tuple[str, ...] = (f"{theirs}wte.weight",)
    fold: Fold = rows
    if sizes.tied and held.head:
        tables, fold = (*tables, HEAD), Repeated(2, rows)
    return [
        Entry("decoder.entrance.embedding.table.weight", tables, fold),
        Entry("decoder.entrance.positions.table.table.weight", (f"{theirs}wpe.weight",), Same()),
        *(entry for i in range(sizes.layers) for entry in layer(f"decoder.layers.{i}", f"{theirs}h.{i}")),
        *norm("decoder.norm", f"{theirs}ln_f"),
        *([] if sizes.tied else [Entry("decoder.output.weight", (HEAD,), rows)]),
        Entry("decoder.output.bias", (), Made(silence(order))),
    ]


def layer(ours: str, theirs: str) -> list[Entry]:
    return [
        *norm(f"{ours}.around_attention.norm", f"{theirs}.ln_1"),
        *transposed(f"{ours}.attention.packed", f"{theirs}.attn.c_attn"),
        *transposed(f"{ours}.attention.output", f"{theirs}.attn.c_proj"),
        *norm(f"{ours}.around_feedforward.norm", f"{theirs}.ln_2"),
        *transposed(f"{ours}.feedforward.inner", f"{theirs}.mlp.c_fc"),
        *transposed(f"{ours}.feedforward.outer", f"{theirs}.mlp.c_proj"),
    ]


def transposed(ours: str, theirs: str) -> list[Entry]:
    folds: dict[str, Fold] = {"weight": Transposed(), "bias": Same()}
    return [Entry(f"{ours}.{name}", (f"{theirs}.{name}",), fold) for name, fold in folds.items()]
