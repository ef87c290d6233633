"""The model sections of a recipe: every size and choice of each family, with its default."""

from typing import Annotated, Literal

from pydantic import Field

from regard.section import Section

Positive = Annotated[int, Field(gt=0)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


class TransformerOptions(Section):
    """Vaswani et al. 2017, and what came after it, one choice per line."""

    kind: Literal["transformer"] = "transformer"
    width: Positive = 256  # d_model
    heads: Positive = 4
    head_width: Positive | None = None  # d_k = d_v of one head; none: width / heads
    feedforward: Positive = 1024
    encoder_layers: Positive = 4
    decoder_layers: Positive = 4
    dropout: Probability = 0.1
    attention_dropout: Probability = 0.0  # above 0 leaves the CPU's flash kernel
    norm: Literal["layer", "layer-outside", "rms"] = "layer"  # ε inside the root, ε outside it, no mean
    order: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu", "swiglu", "geglu", "reglu"] = "relu"
    positions: Literal["sinusoid", "learned", "relative", "rotary", "alibi", "none"] = "sinusoid"
    position_join: Literal["add", "concatenate"] = "add"  # for sinusoid and learned
    position_width: Positive | None = None  # when concatenated; none: width / 4
    position_base: Annotated[float, Field(gt=1.0)] = 10_000.0  # C of the sinusoids and of rotary
    max_length: Positive = 1024  # rows of the position table
    attention: Literal["full", "window", "linear"] = "full"  # self-attention; cross-attention is always full
    window: Positive = 64  # positions each side, for "window"
    scale_embedding: bool = True  # × √width
    tie_output: bool = True  # output layer = target embedding
    share_embeddings: bool = True  # source = target embedding, with a joint vocabulary


class RecurrentOptions(Section):
    """The encoder–decoders of the lectures: plain, simple attention, parameterised, bidirectional and additive."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["tanh", "lstm", "gru"] = "gru"
    embedding: Positive = 256
    width: Positive = 256
    encoder_layers: Positive = 1
    decoder_layers: Positive = 1
    bidirectional: bool = True
    attention: Literal["none", "dot", "scaled-dot", "general", "additive", "parameterised"] = "additive"
    input_feeding: bool = True
    coverage: bool = False
    shared_cell: bool = False  # the deck's one W^h for encoder and decoder
    dropout: Probability = 0.2
    tie_output: bool = False
    share_embeddings: bool = True


ModelOptions = Annotated[TransformerOptions | RecurrentOptions, Field(discriminator="kind")]
