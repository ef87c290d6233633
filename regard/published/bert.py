"""BERT's published weights as those of a BertEncoder, a Pooler and the heads upon them. Devlin et al. 2019."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from regard.published.config import Published, read
from regard.published.fields import OURS, Activation, Epsilon, Layers, check_heads, labels
from regard.published.layout import (
    Entry,
    Fold,
    Last,
    Layout,
    Repeated,
    Rows,
    Same,
    Values,
    check_order,
    linear,
    norm,
    packed,
)
from regard.published.vocabulary import SILENT, Order
from regard.recipe.models import Positive, Probability

HEAD, HEAD_BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
IGNORED = ("*embeddings.position_ids", "cls.seq_relationship.*")  # 0, 1, 2 … in old files; the next-sentence head


class BertConfig(Published):
    model_type: Literal["bert"]
    vocab_size: Positive
    hidden_size: Positive
    num_attention_heads: Positive
    num_hidden_layers: Layers
    intermediate_size: Positive
    max_position_embeddings: Positive
    type_vocab_size: Positive = 2
    hidden_act: Activation = "gelu"
    layer_norm_eps: Epsilon = 1e-12
    hidden_dropout_prob: Probability = 0.1
    attention_probs_dropout_prob: Probability = 0.1
    classifier_dropout: Probability | None = None  # none: hidden_dropout_prob
    id2label: dict[str, str] | None = None
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False
    tie_word_embeddings: bool = True
    problem_type: Literal["single_label_classification"] | None = None


@dataclass(frozen=True)
class Sizes:
    """Everything that a builder needs: post-norm, learned positions, an embedding without scale.

    `labels` are the names of the classes, where the checkpoint has a classifier.
    """

    vocab: int
    width: int
    heads: int
    layers: int
    feedforward: int
    max_length: int
    segments: int
    activation: str
    epsilon: float
    dropout: float
    attention_dropout: float
    classifier_dropout: float
    tied: bool
    labels: tuple[str, ...]


def sizes(config: Mapping[str, Any]) -> Sizes:
    """What the config says, in our words; ModelFormatError names what our model cannot be."""
    theirs = read(BertConfig, config)
    check_heads("num_attention_heads", theirs.num_attention_heads, theirs.hidden_size)
    last = theirs.hidden_dropout_prob if theirs.classifier_dropout is None else theirs.classifier_dropout
    return Sizes(
        vocab=theirs.vocab_size,
        width=theirs.hidden_size,
        heads=theirs.num_attention_heads,
        layers=theirs.num_hidden_layers,
        feedforward=theirs.intermediate_size,
        max_length=theirs.max_position_embeddings,
        segments=theirs.type_vocab_size,
        activation=OURS[theirs.hidden_act],
        epsilon=theirs.layer_norm_eps,
        dropout=theirs.hidden_dropout_prob,
        attention_dropout=theirs.attention_probs_dropout_prob,
        classifier_dropout=last,
        tied=theirs.tie_word_embeddings,
        labels=labels(theirs.id2label),
    )


@dataclass(frozen=True)
class Held:
    """What a file holds beside the encoder, and what stands before the encoder's names.

    `copies`: under which names the output layer is stored again, or where it is not tied its bias; files of different
    years differ in that.
    BertForMaskedLM is "bert." with the masked head and no pooler, BertForSequenceClassification is "bert." with pooler
    and classifier, BertModel has no prefix.
    """

    prefix: str
    pooler: bool
    masked: bool
    copies: frozenset[str]
    classifier: bool


def held(names: Collection[str]) -> Held:
    prefix = "bert." if any(name.startswith("bert.") for name in names) else ""
    return Held(
        prefix=prefix,
        pooler=f"{prefix}pooler.dense.weight" in names,
        masked="cls.predictions.transform.dense.weight" in names,
        copies=frozenset({HEAD, HEAD_BIAS}.intersection(names)),
        classifier="classifier.weight" in names,
    )


def modern(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, with the norms of the first published files (γ, β) under their later names."""
    endings = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    found = {}
    for name, tensor in theirs.items():
        old = next((ending for ending in endings if name.endswith(ending)), "")
        found[name.removesuffix(old) + endings.get(old, "")] = tensor
    return found


def layout(sizes: Sizes, order: Order, held: Held) -> Layout:
    """Ours are the names of a TextClassifier (encoder, pooler, output) and a MaskedLanguageModel (encoder, head)."""
    check_order(order, sizes.vocab)
    theirs = held.prefix
    tables = {"positions.table.table": "position_embeddings", "segments": "token_type_embeddings"}
    words, bias = f"{theirs}embeddings.word_embeddings.weight", "cls.predictions.bias"
    own = held.masked and not sizes.tied
    head = [
        *linear("head.dense", "cls.predictions.transform.dense"),
        *norm("head.norm", "cls.predictions.transform.LayerNorm"),
        *([Entry("head.output.weight", (HEAD,), Rows(order))] if own else []),
        stored("head.output.bias", (bias, HEAD_BIAS), Values(order, SILENT), held, Last if own else Repeated),
    ]
    table = Entry("encoder.entrance.embedding.table.weight", (words,), Rows(order))
    return [
        table if own else stored(table.ours, (words, HEAD), Rows(order), held, Repeated),
        *(
            Entry(f"encoder.entrance.{table}.weight", (f"{theirs}embeddings.{name}.weight",), Same())
            for table, name in tables.items()
        ),
        *norm("encoder.entrance.norm", f"{theirs}embeddings.LayerNorm"),
        *(entry for i in range(sizes.layers) for entry in layer(f"encoder.layers.{i}", f"{theirs}encoder.layer.{i}")),
        *(linear("pooler.dense", f"{theirs}pooler.dense") if held.pooler else []),
        *(head if held.masked else []),
        *(linear("output", "classifier") if held.classifier else []),
    ]


def stored(ours: str, theirs: tuple[str, str], fold: Fold, held: Held, both: type[Repeated | Last]) -> Entry:
    """A tensor under its first name, or under both."""
    return Entry(ours, theirs, both(2, fold)) if theirs[1] in held.copies else Entry(ours, theirs[:1], fold)


def layer(ours: str, theirs: str) -> list[Entry]:
    return [
        *packed(f"{ours}.attention.packed", [f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")]),
        *linear(f"{ours}.attention.output", f"{theirs}.attention.output.dense"),
        *norm(f"{ours}.around_attention.norm", f"{theirs}.attention.output.LayerNorm"),
        *linear(f"{ours}.feedforward.inner", f"{theirs}.intermediate.dense"),
        *linear(f"{ours}.feedforward.outer", f"{theirs}.output.dense"),
        *norm(f"{ours}.around_feedforward.norm", f"{theirs}.output.LayerNorm"),
    ]
